"""Rows and their constraints."""

from tasks_app.models.claim import Claim
from tasks_app.models.delivery import Delivery, DeliveryAttempt
from tasks_app.models.event import TaskEvent
from tasks_app.models.idempotency import IdempotencyKey
from tasks_app.models.inbox import InboxEntry
from tasks_app.models.order import Order
from tasks_app.models.overview import Overview
from tasks_app.models.rollup import RolledHour, Rollup
from tasks_app.models.schedule import Schedule
from tasks_app.models.step import StepRecord
from tasks_app.models.task import Task
from tasks_app.models.token import Token
from tasks_app.models.web import WebProcess
from tasks_app.models.webhook import WebhookSecret
from tasks_app.models.worker import WorkerProcess

__all__ = [
    "Claim",
    "Delivery",
    "DeliveryAttempt",
    "IdempotencyKey",
    "InboxEntry",
    "Order",
    "Overview",
    "RolledHour",
    "Rollup",
    "Schedule",
    "StepRecord",
    "Task",
    "TaskEvent",
    "Token",
    "WebProcess",
    "WebhookSecret",
    "WorkerProcess",
]
