"""Tokens: what is one, what is kept of it, and what may be believed from memory."""

from __future__ import annotations

import asyncio
import math
import random
from dataclasses import replace
from typing import Any

import pytest

from tasks_app import tokens
from tasks_app.errors import InvalidScope, StoreUnavailable
from tasks_app.hold.buckets import Buckets
from tasks_app.store import Call, TokenFacts
from tasks_app.wakeup.message import Message, hints, token_hints
from tasks_app.wakeup.tokens import YES_SECONDS, Tokens
from tasks_app.wakeup.trust import SILENCE_SECONDS, Trust
from tests.unit.fakes import FakePool

FACTS = TokenFacts("aaaaaaaaaaaa", b"d" * 32, "alice", frozenset({"read"}), False, None, 5.0)


def test_a_token_is_long_random_and_not_kept() -> None:
    """What is kept is the digest; the secret is in the text alone."""
    issued = tokens.issue("alice", ["read", "submit", "read"], 60.0, "phone")
    other = tokens.issue("alice", ["read"], None, "")
    _, token_id, secret = issued.text.split("_")
    assert (len(token_id), len(secret)) == (12, 43)
    assert issued.new.id == token_id != other.new.id
    assert issued.new.scopes == ("read", "submit")
    assert secret not in repr(issued.new)
    presented = tokens.read_token(issued.text)
    assert presented is not None and presented.id == token_id
    assert presented.matches(issued.new.digest)
    assert not presented.matches(other.new.digest)


GOOD = tokens.issue("o", ["read"], None, "").text


@pytest.mark.parametrize(
    "text",
    [
        "", "ap", "ap_", "ap__", GOOD[:-1], GOOD + "x", f" {GOOD}", f"{GOOD} ", f"{GOOD}\n", f"{GOOD}\x00", GOOD.upper(),
        "AP" + GOOD[2:], "xp" + GOOD[2:], GOOD.replace("_", "-"), GOOD[:3] + "é" + GOOD[4:], GOOD[:3] + "１" + GOOD[4:],
        GOOD[:-1] + "é", GOOD * 1000, f"{GOOD},{GOOD}", GOOD[:3] + "A" + GOOD[4:], "ap_" + "%" * 12 + GOOD[15:],
    ],
    ids=lambda _: "text",
)  # fmt: skip
def test_what_is_not_quite_a_token_is_none(text: str) -> None:
    """Nothing is trimmed, folded or guessed."""
    assert tokens.read_token(text) is None


@pytest.mark.parametrize("scope", ["claim:*", "claim:mail", "claim:a b", "read", "metrics"])
def test_scopes_are_these(scope: str) -> None:
    """Some words, and claims on a queue."""
    assert tokens.check_scope(scope) == scope


@pytest.mark.parametrize(
    "scope", ["", "*", "all", "READ", "claim", "claim:", "claim:\n", "claim:" + "x" * 201]
)
def test_any_other_scope_is_refused_with_those_that_there_are(scope: str) -> None:
    """A typing error must not become a token that can do nothing."""
    with pytest.raises(InvalidScope, match="cancel, metrics, notify, read, submit, or claim:QUEUE"):
        tokens.issue("alice", [scope], None, "")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (GOOD, True),
        (GOOD[:15], True),
        (GOOD[3:15], True),
        (f" {GOOD}\n", True),
        ("ap_short", False),
        ("", False),
    ],
    # The token differs in each process that collects the tests, and the names of the tests may not.
    ids=["whole", "head", "id", "spaced", "short", "empty"],
)
def test_an_id_is_found_in_whatever_somebody_has_of_a_token(text: str, found: bool) -> None:
    """For revoking: the whole token may be all that is known of one that leaked."""
    assert tokens.id_of(text) == (GOOD[3:15] if found else None)


class World:
    """A table of tokens, a link, and a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.rows = {FACTS.id: FACTS}
        self.trust = Trust(active=True, epoch=1, begun=1, heard_at=math.inf)
        self.pool = FakePool(self._answer)
        self.tokens = Tokens(self.pool, self.trust, lambda: self.now)

    def _answer(self, call: Call[Any]) -> Any:
        if call.statement == "touch_tokens":
            return None
        return {each: self.rows[each] for each in call.params["ids"] if each in self.rows}

    @property
    def reads(self) -> int:
        return sum(call.statement == "find_tokens" for call in self.pool.calls)

    async def look(self, token_id: str = FACTS.id) -> TokenFacts | None:
        return self.tokens.valid(await self.tokens.find(token_id))


async def test_a_token_that_was_read_is_believed_for_a_minute_and_no_longer() -> None:
    """While the link is trusted."""
    world = World()
    for age in (0, 1, 59.9):
        world.now = 100 + age
        assert await world.look() == FACTS
    assert world.reads == 1
    world.now = 160.0
    assert await world.look() == FACTS
    assert world.reads == 2


async def test_a_revocation_that_is_heard_ends_it_at_once() -> None:
    """Also for a request that is held with it."""
    world = World()
    held = await world.tokens.find(FACTS.id)
    world.rows[FACTS.id] = replace(FACTS, revoked=True)
    assert world.tokens.holds(held)
    world.tokens.forget(FACTS.id)
    assert not world.tokens.holds(held)
    assert await world.look() is None
    assert await world.look() is None
    assert world.reads == 2


async def test_a_read_that_was_under_way_when_a_revocation_was_heard_is_not_kept() -> None:
    """It may have been answered before."""
    world = World()
    world.pool.open.clear()
    first = asyncio.ensure_future(world.tokens.find(FACTS.id))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert world.reads == 1
    world.tokens.forget(FACTS.id)
    second = asyncio.ensure_future(world.tokens.find(FACTS.id))
    world.pool.answers = [{FACTS.id: FACTS}]
    world.rows[FACTS.id] = replace(FACTS, revoked=True)
    world.pool.open.set()
    held = await first
    assert world.tokens.valid(await second) is None
    assert not world.tokens.holds(held)


@pytest.mark.parametrize("change", ["silence", "a new trust"])
async def test_without_the_trust_it_was_read_in_a_token_is_read_every_second(change: str) -> None:
    """A revocation may have gone unheard."""
    world = World()
    await world.look()
    if change == "silence":
        world.trust.active = False
    else:
        world.trust.begun += 1
    world.now += 0.9
    await world.look()
    assert world.reads == 1
    world.now += 0.2
    await world.look()
    assert world.reads == 2


@pytest.mark.parametrize("seed", range(40))
async def test_a_revoked_token_is_good_for_two_seconds_at_most_whatever_gets_lost(
    seed: int,
) -> None:
    """Any message of the link may be, the revocation's too, and nobody sweeps. Only without a database it is a minute."""
    chance = random.Random(seed)
    world = World()
    world.trust.heard_at = world.now
    revoked_at, loses = math.inf, chance.random()
    silent_from = 100 + chance.choice([math.inf, chance.uniform(0, 30)])
    away_from = 100 + chance.choice([math.inf, chance.uniform(0, 30)])
    for sequence in range(1, 1_201):
        world.now += 0.1
        said: list[str] = []
        if revoked_at == math.inf and chance.random() < 0.01:
            revoked_at = world.now
            world.rows[FACTS.id] = replace(FACTS, revoked=True)
            said = [FACTS.id]
        if world.now < silent_from and chance.random() >= loses:
            world.trust.observe(Message(1, sequence, chance.random() < 0.2, ""), world.now)
            for token_id in said:
                world.tokens.forget(token_id)
        if world.now >= away_from:
            world.pool.default = lambda call: StoreUnavailable("away")
        try:
            is_good = await world.look() is not None
        except StoreUnavailable:
            is_good = False
        bound = YES_SECONDS if world.now >= away_from else SILENCE_SECONDS
        assert not is_good or world.now < revoked_at + bound
    assert revoked_at < math.inf


async def test_a_token_expires_by_itself_in_memory() -> None:
    """Nobody has to say so; and an expired one costs no read each time."""
    world = World()
    world.rows[FACTS.id] = replace(FACTS, expires_in=10.0)
    held = await world.tokens.find(FACTS.id)
    world.now += 9.9
    assert await world.look() is not None and world.tokens.holds(held)
    world.now += 0.2
    assert await world.look() is None and not world.tokens.holds(held)
    assert world.reads == 1


async def test_an_unknown_id_is_remembered_for_a_moment() -> None:
    """It may be the id of a token that is about to be committed."""
    world = World()
    for _ in range(3):
        assert await world.look("bbbbbbbbbbbb") is None
    assert world.reads == 1
    assert not world.tokens.is_expected("bbbbbbbbbbbb")
    world.rows["bbbbbbbbbbbb"] = replace(FACTS, id="bbbbbbbbbbbb")
    world.now += 5.1
    assert await world.look("bbbbbbbbbbbb") is not None


async def test_a_thousand_tokens_at_once_are_one_statement_or_two() -> None:
    """Gathered; what is asked for during a read goes with the next."""
    world = World()
    ids = [f"{number:012}" for number in range(1_000)]
    world.rows = {each: replace(FACTS, id=each) for each in ids}
    found = await asyncio.gather(*(world.look(each) for each in ids))
    assert all(found)
    assert world.reads <= 2


async def test_guesses_do_not_push_out_what_is_known_and_do_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Unknown ids have a table of their own, and it is bounded."""
    monkeypatch.setattr("tasks_app.wakeup.tokens._MOST_UNKNOWN", 10)
    world = World()
    await world.look()
    await asyncio.gather(*(world.look(f"{number:012}") for number in range(100)))
    assert len(world.tokens._unknown) == 10
    reads = world.reads
    assert await world.look() == FACTS
    assert world.reads == reads


async def test_a_database_that_is_away_is_borne_for_the_minute() -> None:
    """Then nobody may be believed any more."""
    world = World()
    world.trust.active = False
    await world.look()
    world.pool.default = lambda call: StoreUnavailable("away")
    world.now += 30
    assert await world.look() == FACTS
    with pytest.raises(StoreUnavailable):
        await world.look("bbbbbbbbbbbb")
    world.now += 31
    with pytest.raises(StoreUnavailable):
        await world.look()


async def test_a_fault_of_the_read_reaches_who_asked() -> None:
    """Nobody waits for ever."""
    world = World()
    world.pool.answers = [ValueError("broken")]
    with pytest.raises(ValueError, match="broken"):
        await world.look()
    assert await world.look() == FACTS


async def test_use_is_written_down_seldom() -> None:
    """Once for a token that has not been used for a while; the next read tells of it."""
    world = World()
    world.rows[FACTS.id] = replace(FACTS, idle=None)
    for _ in range(3):
        world.tokens.note_use(await world.tokens.find(FACTS.id))
    assert world.tokens._work is not None
    await world.tokens._work
    touched = [call.params["ids"] for call in world.pool.calls if call.statement == "touch_tokens"]
    assert touched == [[FACTS.id]]


def test_hints_of_tokens_travel_with_those_of_tasks() -> None:
    """A process that does not know them passes over them."""
    text = f"{'0' * 32}:3,token:{FACTS.id},token:bbbbbbbbbbbb"
    assert token_hints(text) == [FACTS.id, "bbbbbbbbbbbb"]
    assert token_hints("0" * 34) == []
    assert len(list(hints(Message(1, 1, False, text).hints))) == 1


def test_a_bucket_empties_and_fills_again() -> None:
    """By name; the quietest is forgotten first."""
    now = [0.0]
    buckets = Buckets(rate=2.0, burst=3.0, most=2, clock=lambda: now[0])
    for _ in range(3):
        assert buckets.has("a")
        buckets.take("a")
    assert not buckets.has("a") and buckets.has("b")
    now[0] += 0.5
    assert buckets.has("a")
    buckets.take("a")
    assert not buckets.has("a")
    buckets.take("b")
    buckets.take("c")
    assert len(buckets._left) == 2
