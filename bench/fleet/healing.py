"""How long a fleet takes to be well again after a fault, and how long anybody waited meanwhile."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.fleet.faults import SCENES, Fault, Scene
from bench.fleet.figures import Healed
from tests.fleet.fleet import Fleet, started
from tests.fleet.webs import WELL_SECONDS, Webs
from tests.support import aeventually

_TRIES = 6


def measure(repeat: int, say: Callable[[str], None]) -> Iterator[Healed | str]:
    """Each fault, `repeat` times, on a fleet that it needs; or what could not be measured. The fleets are the tests' own."""
    for scene in SCENES:
        yield from _measure_scene(scene, repeat, say)


def _measure_scene(scene: Scene, repeat: int, say: Callable[[str], None]) -> Iterator[Healed | str]:
    with (
        tempfile.TemporaryDirectory(prefix="bench-fleet-") as name,
        started(Path(name), scene.settings, scene.processes, scene.shares_layer) as fleet,
    ):
        for fault in scene.faults * repeat:
            say(f"{fault.name} …")
            try:
                yield asyncio.run(_suffer(fleet, fault))
            except (AssertionError, OSError) as error:
                yield f"{fault.name}: the fleet did not get well again ({error})"
                return


async def _suffer(fleet: Fleet, fault: Fault) -> Healed | str:
    """The fault, until it was seen to be what it is called."""
    for _ in range(_TRIES):
        before = fleet.webs.count_logged(fault.proof)
        healed = await _Patient(fleet, fault).suffer()
        if not fault.proof or fleet.webs.count_logged(fault.proof) > before:
            return healed
    return f"{fault.name}: it did not come to that in {_TRIES} tries"


class _Patient:
    def __init__(self, fleet: Fleet, fault: Fault) -> None:
        self._fleet = fleet
        self._fault = fault

    async def suffer(self) -> Healed:
        """Strike, mend, wait; everybody is well before and after."""
        fault, fleet = self._fault, self._fleet
        leader = await fleet.webs.leader()
        those = fleet.but(leader) if fault.loses_leader else fleet.webs
        async with fleet.stream(those) as lateness:
            await lateness.goes_on(those)
            struck = time.monotonic()
            await fault.strike(fleet, leader)
            over = struck if fault.loses_leader else time.monotonic()
            if fault.shows:
                await aeventually(lambda: self._is_ill(those))
            if fault.mend:
                await lateness.goes_on(those)
                over = time.monotonic()
                await fault.mend(fleet, leader)
            await aeventually(those.are_well, WELL_SECONDS)
            well = time.monotonic()
            await lateness.goes_on(those)
        if fault.restore:
            await fault.restore(fleet, leader)
        await fleet.leaves_nothing_behind()
        return Healed(
            fault=fault.name,
            lasted_s=over - struck,
            healed_s=well - over,
            worst_wait_s=lateness.worst(),
            machine_s=lateness.excuse,
            limit_s=fault.longest_wait_seconds,
            heal_limit_s=fault.longest_healing_seconds,
        )

    async def _is_ill(self, those: Webs) -> bool:
        return not await those.are_well()
