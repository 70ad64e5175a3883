"""The options that `asyncpoll plan` and `manage.py pollplan` share, and what they ask for."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation

from asyncpoll.planfile import TaskPlan
from tasks_app.insights.columns import UNITS, Columns
from tasks_app.insights.decision import decide
from tasks_app.insights.durations import Durations, needed
from tasks_app.insights.plan import USUAL_HOLD_SECONDS, make_plan
from tasks_app.insights.reading import FORMATS
from tasks_app.insights.report import Report, Verdict
from tasks_app.insights.returns import MOST_DECIMALS, USUAL_HOURS, Investment

OUTPUTS = {
    "table": Report.table,
    "json": Report.document,
    "polling-file": Report.polling_file,
}
RETURN = ("saved_minutes", "runs_per_day", "people", "working_days", "cost_days")
_LARGEST = Decimal("1e12")
# Of what can't be nothing; a plan's durations have three decimals.
_LEAST = Decimal("0.001")


class Unclear(ValueError):
    """Options that do not go together, or leave out what the others need. Says which."""


def add_options(parser: ArgumentParser) -> None:
    """Declare them all."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="measurements; - is stdin")
    parser.add_argument(
        "--task", action="append", metavar="NAME", help="only this type; repeatable"
    )
    parser.add_argument(
        "--max-hold",
        type=_positive,
        metavar="SECONDS",
        help=f"longest hold that server and gateway allow ({USUAL_HOLD_SECONDS:g})",
    )
    _add_reading(parser)
    _add_decision(parser)
    _add_output(parser)


def report(asked: Namespace, durations: Mapping[str, Durations], made_at: datetime) -> Report:
    """What `asked` asks for, of these durations by task type. Raises Unclear."""
    hold = float(asked.max_hold) if asked.max_hold else USUAL_HOLD_SECONDS
    wanted = set(asked.task or durations)
    plans = tuple(
        make_plan(name, durations.get(name) or Durations(), hold) for name in sorted(wanted)
    )
    return Report(made_at, plans, _verdicts(asked, plans), investment(asked))


def columns(asked: Namespace) -> Columns:
    """Which columns to read."""
    return Columns(
        task=asked.task_column,
        duration=asked.duration_column,
        unit=asked.unit,
        only_task=asked.only_task,
        outcome=asked.outcome_column,
        outcomes=tuple(asked.outcome or ("SUCCESS",)),
    )


def investment(asked: Namespace) -> Investment | None:
    """What is to be compared with its cost, if anything is. Raises Unclear for inputs that are missing."""
    given = {name: getattr(asked, name) for name in RETURN}
    if missing := left_out(given):
        names = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        raise Unclear(f"Whether it pays can't be computed without {names}; give all five.")
    return (
        None if None in given.values() else Investment(**given, hours_per_day=asked.hours_per_day)
    )


def left_out(given: Mapping[str, Decimal | None]) -> list[str]:
    """Which of RETURN are missing beside others that are given; none where none is given."""
    missing = [name for name in RETURN if given[name] is None]
    return missing if len(missing) < len(RETURN) else []


def is_about_measurements(asked: Namespace) -> bool:
    """False when all that is asked for can be computed from the options alone."""
    alone = asked.p95 is not None or any(getattr(asked, name) is not None for name in RETURN)
    return bool(asked.files) or not alone


def _verdicts(asked: Namespace, plans: tuple[TaskPlan, ...]) -> tuple[Verdict, ...]:
    if asked.async_share is None:
        if asked.p95 is not None:
            raise Unclear("--p95 is for a decision, which needs --async-share PERCENT as well.")
        return ()
    share = float(asked.async_share)
    if asked.p95 is not None:
        return (Verdict("decision", decide(share, float(asked.p95))),)
    return tuple(_verdict(plan, share) for plan in plans)


def _verdict(plan: TaskPlan, share: float) -> Verdict:
    decision = decide(share, None if plan.p95_ms is None else plan.p95_ms / 1000)
    if decision is not None:
        return Verdict(plan.task, decision)
    return Verdict(
        plan.task,
        None,
        f"not decided: P95 needs {needed(95)} samples and there are {plan.samples}; measure more, or give --p95",
    )


def _add_reading(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("what a file holds")
    group.add_argument("--from", dest="kind", choices=FORMATS, help="found out if not given")
    group.add_argument("--task-column", default="task", metavar="NAME", help="(task)")
    group.add_argument(
        "--duration-column", default="duration_ms", metavar="NAME", help="(duration_ms)"
    )
    group.add_argument(
        "--unit",
        choices=sorted(UNITS),
        help="of durations; if not given, what the column's name ends in, or ms",
    )
    group.add_argument("--only-task", metavar="NAME", help="all rows are of this type")
    group.add_argument("--outcome-column", metavar="NAME", help="count only rows of --outcome")
    group.add_argument(
        "--outcome", action="append", metavar="WORD", help="(SUCCESS); repeatable; of logs, too"
    )


def _add_decision(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("the decision, and whether it pays")
    group.add_argument("--async-share", type=_percent, metavar="PERCENT", help="of all cases")
    group.add_argument("--p95", type=_number, metavar="SECONDS", help="instead of the measured one")
    group.add_argument("--saved-minutes", type=_number, metavar="N", help="per person and run")
    group.add_argument("--runs-per-day", type=_number, metavar="N")
    group.add_argument("--people", type=_number, metavar="N")
    group.add_argument("--working-days", type=_number, metavar="N")
    group.add_argument("--cost-days", type=_number, metavar="N", help="person-days that it costs")
    group.add_argument(
        "--hours-per-day",
        type=_positive,
        default=USUAL_HOURS,
        metavar="N",
        help="of a person-day (8)",
    )


def _add_output(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--format", dest="output_format", choices=sorted(OUTPUTS), default="table")
    group.add_argument("--output", metavar="PATH", help="instead of stdout")


def _number(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal(-1)
    if not number.is_finite() or not 0 <= number <= _LARGEST:
        raise ArgumentTypeError(f"{text!r} is not a number from 0 to {_LARGEST:,f}")
    if round(number, MOST_DECIMALS) != number:
        raise ArgumentTypeError(f"{text!r} has more than {MOST_DECIMALS} decimals")
    return number


def _positive(text: str) -> Decimal:
    number = _number(text)
    if number < _LEAST:
        raise ArgumentTypeError(f"{text!r} has to be {_LEAST} or more")
    return number


def _percent(text: str) -> Decimal:
    number = _number(text.removesuffix("%"))
    if number > 100:
        raise ArgumentTypeError(f"{text!r} is not a share in percent, from 0 to 100")
    return number
