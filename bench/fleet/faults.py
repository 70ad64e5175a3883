"""What can go wrong in a fleet, as the tests have it break: what is done, what is undone, and who is excused."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.fleet.fleet import Fleet
from tests.fleet.webs import Web

Deed = Callable[[Fleet, Web], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Fault:
    """`strike` and `mend` are told the process that relays. Without `mend`, what was done is over or stays for ever.

    `loses_leader`: that process takes no part until `restore`, and its clients are not counted.
    `shows`: everybody first waits until the fleet itself has noticed. `proof`: what some process then logs, if
    it came to that; the silence of the link may be noticed earlier, and the fault is tried again.
    """

    name: str
    strike: Deed
    mend: Deed | None = None
    restore: Deed | None = None
    loses_leader: bool = False
    shows: bool = True
    longest_wait_seconds: float = 3.0
    longest_healing_seconds: float | None = None
    proof: str = ""


def _signal(number: int) -> Deed:
    async def send(fleet: Fleet, leader: Web) -> None:
        leader.signal(number)

    return send


async def _kill_redis(fleet: Fleet, leader: Web) -> None:
    fleet.redis.kill()


async def _start_redis(fleet: Fleet, leader: Web) -> None:
    await asyncio.to_thread(fleet.redis.start)


async def _pause_redis(fleet: Fleet, leader: Web) -> None:
    fleet.redis.pause()


async def _resume_redis(fleet: Fleet, leader: Web) -> None:
    fleet.redis.resume()


async def _kill(fleet: Fleet, leader: Web) -> None:
    leader.kill()


async def _start(fleet: Fleet, leader: Web) -> None:
    leader.start()


async def _cut_from_redis(fleet: Fleet, leader: Web) -> None:
    leader.redis.cut()


async def _mend(fleet: Fleet, leader: Web) -> None:
    fleet.mend()


async def _restart_postgres(fleet: Fleet, leader: Web) -> None:
    await asyncio.to_thread(fleet.postgres.restart)


async def _blackhole_listener(fleet: Fleet, leader: Web) -> None:
    leader.listening.blackhole()


async def _stall_listener(fleet: Fleet, leader: Web) -> None:
    leader.listening.stall()


async def _blackhole_redis(fleet: Fleet, leader: Web) -> None:
    fleet.but(leader)[0].redis.blackhole()


async def _blackhole_relay(fleet: Fleet, leader: Web) -> None:
    leader.redis.blackhole()


async def _close_gate(fleet: Fleet, leader: Web) -> None:
    fleet.gate.touch()


async def _overrun(fleet: Fleet, leader: Web) -> None:
    await fleet.overrun(fleet.but(leader)[0])


_OF_A_FLEET = (
    Fault("Valkey killed, then started", _kill_redis, _start_redis),
    Fault("Valkey frozen, then continued", _pause_redis, _resume_redis),
    Fault(
        "relaying process killed",
        _kill,
        restore=_start,
        loses_leader=True,
        shows=False,
        longest_wait_seconds=1.0,
        longest_healing_seconds=1.0,
    ),
    Fault(
        "relaying process frozen",
        _signal(signal.SIGSTOP),
        restore=_signal(signal.SIGCONT),
        loses_leader=True,
        shows=False,
        longest_healing_seconds=6.0,
    ),
    Fault("relaying process cut off from Valkey, then not", _cut_from_redis, _mend),
    Fault("Postgres restarted", _restart_postgres, shows=False),
    Fault("its listening connection loses all packets", _blackhole_listener, restore=_mend),
    Fault("its listening connection goes silent", _stall_listener, restore=_mend),
    Fault("one process's Valkey connection loses all packets", _blackhole_redis, restore=_mend),
    Fault("a process reads too slowly and is cut off", _overrun, shows=False),
)

_WITH_KEEPALIVE = (
    Fault(
        "the relaying process's Valkey connection loses all packets, and TCP keepalive ends it",
        _blackhole_relay,
        restore=_mend,
        proof="Connection timed out",
    ),
)
_IN_MEMORY = (
    Fault(
        "more wake-ups than an in-memory layer keeps while its process does not take them, then it does",
        _close_gate,
        _mend,
        proof="No room for a message",
    ),
)


@dataclass(frozen=True, slots=True)
class Scene:
    """Faults that need the same fleet."""

    faults: tuple[Fault, ...]
    settings: str = "tests.settings"
    processes: int = 3
    shares_layer: bool = True


SCENES = (
    Scene(_OF_A_FLEET),
    Scene(_WITH_KEEPALIVE, "tests.fleet.keepalive_settings"),
    Scene(_IN_MEMORY, "tests.fleet.gated_settings", processes=1, shares_layer=False),
)
