"""The views that are served the lean way."""

from django.urls import path

from tests.holdsite import views

app_name = "asyncpoll"
urlpatterns = [
    path("hold", views.hold),
    path("client", views.client),
    path("stubborn", views.stubborn),
    path("state", views.state),
    path("echo", views.echo),
    path("fail/<how>", views.fail),
    path("nothing", views.nothing),
    path("last", views.last),
    path("slow", views.slow),
]
