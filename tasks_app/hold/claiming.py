"""One claim: look for work, wait for an offer, look again; and the same claim again is the same tasks again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from uuid import UUID

from asyncpoll.contract import ClaimOutcome
from tasks_app import conf, store
from tasks_app.claiming.claim import take
from tasks_app.claiming.rounds import Round
from tasks_app.claiming.turns import Turns
from tasks_app.events import emit
from tasks_app.hold.admission import Account, Verdict, admission, granted
from tasks_app.hold.claimlimits import ClaimLimit
from tasks_app.hold.window import Window
from tasks_app.owned import owned
from tasks_app.store import Leased
from tasks_app.store.pool import Pool, Transaction
from tasks_app.store.quarantine import despite_unfit
from tasks_app.wakeup.offers import Claimant
from tasks_app.wakeup.service import WakeupService, current_service
from tasks_app.wakeup.topic import Wake


@dataclass(frozen=True, slots=True)
class ClaimAsked:
    """What an executor asks for: up to `limit` tasks of `queue`, under the id `claim`.

    `caller` is who is limited; `confirm` raises when it may not claim any more.
    """

    claim: UUID
    queue: str
    limit: int
    asked_seconds: float
    owner: str | None
    caller: str
    confirm: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Taken:
    """The tasks that a claim holds. `repeated`: it had been made before, and these are what is left of it."""

    tasks: tuple[Leased, ...]
    repeated: bool


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """What a claim came to."""

    taken: Taken
    outcome: ClaimOutcome
    window: Window
    held_seconds: float


_NOTHING = Taken((), repeated=False)
_OUTCOMES = {Verdict.SHED: ClaimOutcome.SHED, Verdict.DRAINING: ClaimOutcome.DRAINING}


# Executors ask for a handful of tasks each; who was idle may begin this many before it is again one task each.
_CREDIT = 20
_ROUTE = "claim"


@lru_cache(maxsize=1_000)
def _turns_of(queue: str) -> Turns:
    """Whose turn it is on `queue`, in this process."""
    return Turns(_CREDIT)


async def claim(asked: ClaimAsked) -> ClaimAnswer:
    """Claim as `asked` says, held until there is work. Raises TooManyHeld, ClaimedTooOften or StoreUnavailable."""
    service = await current_service()
    with admission.enter(Account(asked.owner or ""), asked.asked_seconds > 0, _ROUTE) as verdict:
        window = granted(verdict, asked.asked_seconds)
        started = time.monotonic()
        taken, why = await _hold(service, asked, window, verdict)
    answer = ClaimAnswer(taken, _outcome(taken, why, verdict), window, time.monotonic() - started)
    emit(
        "claim.answered",
        route=_ROUTE,
        queue=asked.queue,
        outcome=answer.outcome,
        count=len(taken.tasks),
        repeated=taken.repeated,
        held_seconds=answer.held_seconds,
    )
    return answer


async def _hold(
    service: WakeupService, asked: ClaimAsked, window: Window, verdict: Verdict
) -> tuple[Taken, Wake]:
    if verdict is Verdict.DRAINING:
        # Tasks that a server hands out while it goes away would be the first to get lost.
        return _NOTHING, Wake.DRAINING
    limit = ClaimLimit(asked.queue, asked.caller, window.granted_seconds)
    limit.begin()
    claimant = service.hub.offers.join(asked.queue)
    try:
        taken, why = await _look_until_found(service, claimant, asked, window.granted_seconds)
    except asyncio.CancelledError:
        limit.abandon()
        raise
    finally:
        service.hub.offers.leave(claimant)
    limit.settle(taken.repeated, bool(taken.tasks))
    return taken, why


async def _look_until_found(
    service: WakeupService, claimant: Claimant, asked: ClaimAsked, granted_seconds: float
) -> tuple[Taken, Wake]:
    until = time.monotonic() + granted_seconds
    while True:
        async with service.hub.offers.looking:
            # Owned: a client that hangs up must not cancel a claim half-way.
            looked = partial(_take, service.pool, asked)
            taken = await owned(despite_unfit(service.pool, looked))
        if taken.tasks or taken.repeated:
            if len(taken.tasks) == asked.limit:
                service.hub.offers.offer(asked.queue)  # there may be more, for the next in line
            return taken, Wake.OFFER
        why = await claimant.woken(until - time.monotonic()) if granted_seconds else Wake.TIMEOUT
        if why is not Wake.OFFER:
            return taken, why
        await _confirm(service, asked)


async def _confirm(service: WakeupService, asked: ClaimAsked) -> None:
    """Before a look that was waited for: tasks that are taken for nobody would lie there until their leases end."""
    try:
        await asked.confirm()
    except Exception:
        service.hub.offers.offer(asked.queue)
        raise


async def _take(pool: Pool, asked: ClaimAsked) -> Taken:
    """What this claim holds already, or else what it can get now."""
    lease = conf.current().LEASE_SECONDS
    async with pool.transaction() as transaction:
        await transaction.run(store.lock_claim(asked.claim))
        found = await transaction.run(store.find_claim(asked.claim))
        held = found if found is not None else []
        if found is None:
            held = await _take_fresh(transaction, asked, lease)
            if not held:
                return _NOTHING
            await transaction.run(store.keep_claim(asked.claim, held, lease))
        leased = await transaction.run(store.extend(asked.claim, held, lease))
    if found is None:
        emit("task.claimed", count=len(held), asked=asked.limit)
    return Taken(tuple(leased), repeated=found is not None)


async def _take_fresh(transaction: Transaction, asked: ClaimAsked, lease: float) -> list[UUID]:
    """As many as asked for, if there are so many: what one owner falls short of is taken from the others."""
    turns, round_ = _turns_of(asked.queue), Round()
    taken: list[UUID] = []
    while len(taken) < asked.limit:
        found = await transaction.run(store.lanes([asked.queue], seen=turns.seen))
        turns.relearn(found)
        round_.meet(found)
        taken += await _take_of(turns, transaction, asked, asked.limit - len(taken), lease)
        if not round_.goes_on:
            break
    return taken


async def _take_of(
    turns: Turns, transaction: Transaction, asked: ClaimAsked, limit: int, lease: float
) -> list[UUID]:
    """Of those whom `turns` knows, until they have nothing left or there is no room for what they have."""
    taken: list[UUID] = []
    while turns and len(taken) < limit:
        fresh = await take(transaction, turns, asked.claim, limit - len(taken), lease)
        if fresh is None:
            break
        taken += [task.id for task in fresh]
    return taken


def _outcome(taken: Taken, why: Wake, verdict: Verdict) -> ClaimOutcome:
    if taken.tasks or taken.repeated:
        return ClaimOutcome.CLAIMED
    if why is Wake.DRAINING:
        return ClaimOutcome.DRAINING
    return _OUTCOMES.get(verdict, ClaimOutcome.EMPTY)
