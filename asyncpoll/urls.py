"""Where everything is."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from tasks_app.api.health import healthz, readyz
from tasks_app.api.urls import not_found

# The API's address without its slash is not redirected, but answered like every other that leads nowhere.
health_patterns = (
    [path("healthz", healthz), path("readyz", readyz), path("api/v1", not_found)],
    "asyncpoll",
)

urlpatterns = [
    path("api/v1/", include("tasks_app.api.urls")),
    path("", include(health_patterns, namespace="health")),
    path("admin/", admin.site.urls),
    path("", RedirectView.as_view(pattern_name="admin:index")),
]
