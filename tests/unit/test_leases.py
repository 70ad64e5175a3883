"""Lease tokens: for one attempt at one task under one claim, and nothing else."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.test import override_settings

from tasks_app.api.leases import Lease, claim_key, lease_token, read_token
from tasks_app.api.responses import ProblemRaised
from tasks_app.store import Claimed

CLAIM = claim_key("alice", "pdf", "first")
TASK = Claimed(UUID(int=1), "t", "pdf", "", "[]", "{}", 2, 0, 3, 600.0, 2, False, None, 0.0)


def test_a_token_names_its_lease():
    """What was signed comes back."""
    assert read_token(TASK.id, lease_token(TASK, CLAIM)) == Lease(TASK.id, 2, CLAIM)


def test_the_same_lease_has_the_same_token_so_that_a_claim_can_be_repeated():
    """Nothing random is in it."""
    assert lease_token(TASK, CLAIM) == lease_token(TASK, CLAIM)


def changed(token, **parts):
    attempt, claim, signature = token.split(".")
    facts = {"attempt": attempt, "claim": claim, "signature": signature, **parts}
    return ".".join(facts.values())


@pytest.mark.parametrize(
    "forged",
    [
        lambda token: "",
        lambda token: "a.b.c",
        lambda token: token[:-1],
        lambda token: changed(token, attempt="3"),
        lambda token: changed(token, claim=claim_key("alice", "pdf", "second").hex),
        lambda token: changed(token, signature=""),
        lambda token: token + "\x00",
        lambda token: "é" + token,
        lambda token: token.upper(),
    ],
)
def test_a_token_that_was_changed_is_refused(forged):
    """Whatever was changed, and without a word on what the right one would be."""
    with pytest.raises(ProblemRaised) as raised:
        read_token(TASK.id, forged(lease_token(TASK, CLAIM)))
    assert raised.value.response.status_code == 403


def test_a_token_is_no_use_for_another_task():
    """The task is signed along."""
    with pytest.raises(ProblemRaised):
        read_token(UUID(int=2), lease_token(TASK, CLAIM))


def test_a_token_survives_the_rotation_of_the_secret_key():
    """As long as the old key is a fallback."""
    with override_settings(SECRET_KEY="old"):
        token = lease_token(TASK, CLAIM)
    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["old"]):
        assert read_token(TASK.id, token).attempt == 2
    with override_settings(SECRET_KEY="new"), pytest.raises(ProblemRaised):
        read_token(TASK.id, token)


def test_a_claim_id_is_its_owners_own():
    """Somebody else's claim of the same name is another claim, and so is one on another queue."""
    keys = {
        claim_key(owner, queue, "first")
        for owner in (None, "", "alice", "bob")
        for queue in ("pdf", "mail")
    }
    assert len(keys) == 8
    assert claim_key("alice", "pdf", "first") == CLAIM
