"""`asyncpoll plan`: how to wait for tasks, from measurements of any system. Needs no Django and no database."""

from __future__ import annotations

import sys
from argparse import Namespace, _SubParsersAction
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from asyncpoll import planfile
from asyncpoll.cli.exits import Exit
from tasks_app.insights.measured import Measured
from tasks_app.insights.opening import opened
from tasks_app.insights.options import (
    OUTPUTS,
    Unclear,
    add_options,
    columns,
    is_about_measurements,
    report,
)
from tasks_app.insights.reading import Refused, read_into
from tasks_app.insights.report import Report

_MOST_SHOWN = 20
_ABOUT = (
    "Turns measured durations into percentiles and polling parameters for each type of task, says whether to poll at all, "
    "and whether it pays. Reads logs of ASYNC_TASK_DONE lines, JSON lines, and CSV with named columns."
)


def register(subparsers: _SubParsersAction[Any]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "plan", help="how long to wait, from measurements", description=_ABOUT
    )
    add_options(parser)
    parser.set_defaults(run=run)


def run(asked: Namespace) -> int:
    """Do what was asked; gives the exit code. 3 with one sentence on stderr if it can't be done."""
    try:
        text = written(asked, from_files(asked))
    except (Unclear, Refused, OSError, planfile.PlanFileError) as error:
        print(f"asyncpoll plan: {error}", file=sys.stderr)
        return Exit.USAGE
    sys.stdout.write(text)
    return Exit.DONE


def from_files(asked: Namespace) -> Report:
    """A report on the files that were named. Raises Unclear, Refused and OSError."""
    found = Measured()
    if is_about_measurements(asked):
        _read_files(asked, found)
    made = report(asked, found.by_task, datetime.now(UTC))
    return replace(made, remarks=(*found.remarks(), *_unheard(asked, found)))


def _unheard(asked: Namespace, found: Measured) -> tuple[str, ...]:
    """Types that were asked for and nowhere measured, and what may have been meant."""
    if not found.count or not (unheard := set(asked.task or ()) - found.by_task.keys()):
        return ()
    measured = sorted(found.by_task)
    more = " …" if len(measured) > _MOST_SHOWN else ""
    return (
        f"Not measured: {', '.join(sorted(unheard))}. There are: {', '.join(measured[:_MOST_SHOWN])}{more}",
    )


def written(asked: Namespace, made: Report) -> str:
    """The report as it was asked for; nothing where it was written to a file. What a polling file has no place for is said
    on stderr. Raises Refused and PlanFileError."""
    text = OUTPUTS[asked.output_format](made)
    if asked.output_format == "polling-file":
        # It has no place for them.
        for remark in made.remarks:
            print(remark, file=sys.stderr)
    if asked.output is None:
        return text
    if asked.output_format == "polling-file":
        planfile.write(asked.output, planfile.parse(text))
    else:
        _write(asked.output, text)
    return ""


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refused(f"{planfile.unwritable(path, error)}.") from None


def _read_files(asked: Namespace, found: Measured) -> None:
    if not asked.files:
        raise Unclear(
            "Name a FILE with measurements, or - for stdin; a decision needs none with --p95 SECONDS."
        )
    wanted = columns(asked)
    for name in asked.files:
        with opened(name) as stream:
            read_into(found, "stdin" if name == "-" else name, stream, wanted, asked.kind)
    if not found.count:
        said = "\n".join(found.remarks()) or (
            f"{found.others:,} lines, and none of them is one: a worker's log has lines with ASYNC_TASK_DONE. For other "
            "files give --from jsonl, a JSON object a line, or --from csv, and name --task-column and --duration-column."
        )
        raise Refused(f"There are no measurements in {', '.join(asked.files)}. {said}")
