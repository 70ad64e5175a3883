"""The page that says how long to wait, whether to poll at all, and whether it pays: with the inputs of who asks."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.core.validators import DecimalValidator
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse

from tasks_app import conf
from tasks_app.admin.readonly import ReadOnlyAdmin
from tasks_app.admin.standing import hastened
from tasks_app.insights.options import RETURN, left_out, report
from tasks_app.insights.report import Report
from tasks_app.insights.returns import MOST_DECIMALS, USUAL_HOURS
from tasks_app.plans.registry import Asked, Measurement, combined
from tasks_app.plans.remarks import remarks

_LARGEST = Decimal("1e12")
_VALIDATORS = (DecimalValidator(None, MOST_DECIMALS),)
_USUAL: dict[str, Any] = {"days": 30, "hours_per_day": USUAL_HOURS}


def _number(label: str, help_text: str = "", most: Decimal = _LARGEST) -> forms.DecimalField:
    return forms.DecimalField(
        label=label,
        help_text=help_text,
        required=False,
        min_value=Decimal(0),
        max_value=most,
        validators=_VALIDATORS,
    )


class PlanForm(forms.Form):
    """What is asked. Everything may be left out: then there are the plans alone."""

    days = forms.IntegerField(
        label="Tasks that ended within so many days",
        min_value=1,
        max_value=3_650,
        initial=_USUAL["days"],
    )
    async_share = _number("Share of asynchronous cases, in %", "For the decision.", Decimal(100))
    p95 = _number("P95 in seconds", "Instead of the measured one.")
    saved_minutes = _number(
        "Minutes saved per person and run",
        "For whether it pays, together with the next four fields: fill in all five or none.",
    )
    runs_per_day = _number("Runs a day")
    people = _number("People")
    working_days = _number("Working days")
    cost_days = _number("Person-days that it costs")
    hours_per_day = forms.DecimalField(
        label="Hours of a person-day",
        min_value=Decimal("0.1"),
        max_value=24,
        initial=_USUAL["hours_per_day"],
        validators=_VALIDATORS,
    )


class PlanningAdmin(ReadOnlyAdmin):
    """An admin that has this page."""

    def plan_view(self, request: HttpRequest) -> HttpResponse:
        """GET: the plans, and what follows from the inputs in the address."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        form = PlanForm(request.GET if "days" in request.GET else _USUAL)
        form.is_valid()
        # What is out of range is said beside its field, and the rest is answered as if it had been left out.
        inputs = dict.fromkeys(form.fields) | _USUAL | form.cleaned_data
        found = _found(inputs)
        return self.page(request, "overview/plan.html", "How long to wait", form=form, **found)


def _found(inputs: dict[str, Any]) -> dict[str, Any]:
    try:
        made = _report(inputs | _only_whole(inputs))
    except OperationalError:
        return {"unclear": ["The database did not say in time; ask for fewer days."]}
    return {"report": made, "unclear": _unclear(inputs)}


def _only_whole(inputs: dict[str, Any]) -> dict[str, None]:
    """What is to be ignored, so that the rest is still answered: inputs that need others beside them."""
    ignored = RETURN if left_out(inputs) else ()
    alone = ("p95",) if inputs["async_share"] is None else ()
    return dict.fromkeys((*ignored, *alone))


def _unclear(inputs: dict[str, Any]) -> list[str]:
    said = []
    if missing := left_out(inputs):
        labels = ", ".join(f"“{PlanForm.base_fields[name].label}”" for name in missing)
        said.append(f"Whether it pays can't be computed without {labels}.")
    if inputs["p95"] is not None and inputs["async_share"] is None:
        share = PlanForm.base_fields["async_share"].label
        said.append(f"The decision can't be made without “{share}”.")
    return said


def _report(inputs: dict[str, Any]) -> Report:
    measured = _measured(inputs["days"])
    asked = Namespace(**inputs, task=None, max_hold=conf.current().MAX_HOLD_SECONDS)
    made = report(asked, {name: each.ran for name, each in measured.items()}, datetime.now(UTC))
    return replace(made, remarks=remarks(measured))


def _measured(days: int) -> dict[str, Measurement]:
    of_newest, of_ran, of_waited = Asked(days * 86_400.0).calls()
    newest, ran, waited = hastened(of_newest), hastened(of_ran), hastened(of_waited)
    return combined(newest, ran, waited)
