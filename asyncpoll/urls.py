"""Where everything is."""

from __future__ import annotations

from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from asyncpoll.demopage import demo, demo_asset
from tasks_app.api.health import healthz, readyz
from tasks_app.api.metrics import metrics
from tasks_app.api.urls import not_found

admin.site.site_header = admin.site.site_title = "asyncpoll"

# What leads nowhere below api is a problem document as well, the API's address without its slash included.
health_patterns = (
    [
        path("healthz", healthz),
        path("readyz", readyz),
        path("metrics", metrics),
        re_path(r"^api(?:/|$)", not_found),
    ],
    "asyncpoll",
)

demo_patterns = ([path("demo", demo), path("demo/<str:name>", demo_asset)], "asyncpoll")

urlpatterns = [
    path("api/v1/", include("tasks_app.api.urls")),
    path("", include(demo_patterns, namespace="demo")),
    path("", include(health_patterns, namespace="health")),
    path("admin/", admin.site.urls),
    # Browsers ask for it unasked.
    path("favicon.ico", RedirectView.as_view(url=static("tasks_app/icon.svg"), permanent=True)),
    path("", RedirectView.as_view(pattern_name="admin:index")),
]
