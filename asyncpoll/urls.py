"""Where everything is."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from tasks_app.api.health import healthz, readyz

health_patterns = ([path("healthz", healthz), path("readyz", readyz)], "asyncpoll")

urlpatterns = [
    path("api/v1/", include("tasks_app.api.urls")),
    path("", include(health_patterns, namespace="health")),
    path("admin/", admin.site.urls),
    path("", RedirectView.as_view(pattern_name="admin:index")),
]
