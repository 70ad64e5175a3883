"""What a fleet means to keep to, and whether it did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bench.fleet.figures import Crowded, Healed, Size, Traffic
from bench.fleet.scenario import MEAN_SECONDS, requests_per_task
from bench.fleet.ways import HOLD_SECONDS
from bench.verdicts import Verdict

FLOOR_MARGIN = 1.1
"""On the fewest requests there can be: for holds that are up to 1/16 shorter than asked for, and pauses between them."""
READS = 1.02
"""For each change and each first poll; the rest is what all that are waited for cost every 15 s, read again together."""
BUNDLES = 5.0
"""Requests a second, by 15 clients that wait for 100 tasks each."""


def judge(
    crowded: Iterable[Crowded], traffic: Iterable[Traffic], healed: Iterable[Healed]
) -> list[Verdict]:
    """Every aim for which there are figures."""
    return [
        *(verdict for one in crowded for verdict in _judge_crowded(one)),
        *(verdict for one in traffic for verdict in _judge_traffic(one)),
        *(verdict for one in healed for verdict in _judge_healed(one)),
    ]


def size_text(size: Size) -> str:
    """How a size is named in a table."""
    return f"{size.processes} × {size.layer}"


def _judge_crowded(one: Crowded) -> Iterator[Verdict]:
    yield _at_most("wrong or missing answers", 0, size_text(one.size), one.failed)
    where = f"{size_text(one.size)}, {one.drained:,} drained"
    yield _at_most("resets", 0, where, one.resets)
    yield _at_most("answers other than 200", 0, where, one.not_drained)
    yield _at_most("s to drain", 3, where, one.drain_s)


def _judge_traffic(one: Traffic) -> Iterator[Verdict]:
    if one.way == "plain":
        return
    where = f"{size_text(one.size)}, {one.way}"
    yield _at_most("errors", 0, where, one.errors)
    news = one.changes_per_minute + one.first_polls_per_minute
    if news:
        yield Verdict(
            "reads by changes and first polls", "≤", READS, where, one.reads_per_minute / news
        )
    if one.way == "each":
        fewest = one.clients / MEAN_SECONDS * requests_per_task(HOLD_SECONDS)
        yield _at_most("requests/s", fewest * FLOOR_MARGIN, where, one.requests_per_second)
    if one.way == "hundred":
        yield _at_most("requests/s", BUNDLES, where, one.requests_per_second)


def _judge_healed(one: Healed) -> Iterator[Verdict]:
    yield _at_most("s waited", one.limit_s, one.fault, one.worst_wait_s - one.machine_s)
    if one.heal_limit_s is not None:
        yield _at_most("s to heal", one.heal_limit_s, one.fault, one.healed_s)


def _at_most(title: str, limit: float, where: str, value: float) -> Verdict:
    return Verdict(title, "≤", limit, where, value, is_ratio=False)
