"""How long a fleet takes to be well again after a fault, and how long anybody waited meanwhile."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.fleet.faults import FAULTS, Fault
from bench.fleet.figures import Healed
from tests.fleet.fleet import Fleet, started
from tests.fleet.stream import stream
from tests.fleet.webs import WELL_SECONDS, Webs
from tests.support import aeventually


def measure(repeat: int, say: Callable[[str], None]) -> Iterator[Healed | str]:
    """Each fault, `repeat` times, on one fleet; or what could not be measured. The fleet is the tests' own."""
    with tempfile.TemporaryDirectory(prefix="bench-fleet-") as name, started(Path(name)) as fleet:
        for fault in FAULTS * repeat:
            say(f"{fault.name} …")
            try:
                yield asyncio.run(_Patient(fleet, fault).suffer())
            except (AssertionError, OSError) as error:
                yield f"{fault.name}: the fleet did not get well again ({error})"
                return


class _Patient:
    def __init__(self, fleet: Fleet, fault: Fault) -> None:
        self._fleet = fleet
        self._fault = fault

    async def suffer(self) -> Healed:
        """Strike, mend, wait; everybody is well before and after."""
        fault, fleet = self._fault, self._fleet
        leader = await fleet.webs.leader()
        those = fleet.but(leader) if fault.loses_leader else fleet.webs
        async with stream(fleet.postgres.url, those) as lateness:
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
