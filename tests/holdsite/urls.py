"""Lean views under api/, and others."""

from django.urls import include, path

from tests.holdsite import views

urlpatterns = [
    path("api/", include("tests.holdsite.api_urls")),
    path("plain", views.plain),
    path("readyz", views.ready),
    path("stream", views.stream),
    path("large", views.large),
    path("slow", views.slow),
    path("echo", views.echo),
]
