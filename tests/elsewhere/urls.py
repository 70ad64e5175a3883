"""Two admin sites below a prefix: one has all of ours, the other nothing but tasks."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from tasks_app import models
from tasks_app.admin import TaskAdmin

ops = admin.AdminSite(name="ops")
for model, model_admin in admin.site._registry.items():
    if model.__module__.startswith(models.__name__):
        ops.register(model, type(model_admin))

tasks_only = admin.AdminSite(name="tasks_only")
tasks_only.register(models.Task, TaskAdmin)

urlpatterns = [path("back/office/", ops.urls), path("back/tasks/", tasks_only.urls)]
