"""`Authorization: Bearer ap_<id>_<secret>`: what is taken for a token of ours, and what checking it may cost."""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponse

from asyncpoll.contract import Problem
from tasks_app.api.guesses import Guesses
from tasks_app.api.responses import ProblemRaised, problem
from tasks_app.api.sources import source_of
from tasks_app.redaction import HIDDEN
from tasks_app.store import TokenFacts
from tasks_app.tokens import Presented, read_token
from tasks_app.wakeup.service import current_service
from tasks_app.wakeup.tokens import Known, Tokens

# The scheme is not case-sensitive, everything else is. A header that was given twice arrives joined with a comma.
_BEARER = re.compile(r"bearer +(ap_[A-Za-z0-9_]{56})", re.IGNORECASE | re.ASCII)

_NO_DIGEST = bytes(32)
guesses = Guesses()


class Bearer:
    """A token that came with a request, and what is known of it."""

    __slots__ = ("_known", "_presented", "_tokens")

    def __init__(self, presented: Presented, tokens: Tokens, known: Known) -> None:
        self._presented, self._tokens, self._known = presented, tokens, known

    def facts(self) -> TokenFacts | None:
        """What the token is good for; None if it is not, or not any more."""
        facts = self._tokens.valid(self._known)
        # Compared also where there is nothing to compare with, so that the ids that exist can't be told by time.
        matches = self._presented.matches(_NO_DIGEST if facts is None else facts.digest)
        return facts if matches else None

    def holds(self) -> bool:
        """False when the token has to be looked at again."""
        return self._tokens.holds(self._known)

    async def look(self) -> None:
        """Look at it again. Raises StoreUnavailable."""
        self._known = await self._tokens.find(self._presented.id)


async def read_bearer(request: HttpRequest) -> Bearer | None:
    """The token of a request, looked up; None where it has none of ours.

    Raises ProblemRaised with 429 for a source that has shown too many unknown ones, and StoreUnavailable.
    """
    presented = _take(request)
    if presented is None:
        return None
    tokens = (await current_service()).tokens
    known = tokens.recall(presented.id)
    if known is None:
        known = await _look(tokens, presented.id, source_of(request))
    bearer = Bearer(presented, tokens, known)
    if bearer.facts() is not None:
        tokens.note_use(known)
    return bearer


def _take(request: HttpRequest) -> Presented | None:
    """The token, out of the request: an error report prints that, and what is in the frames of a traceback."""
    match = _BEARER.fullmatch(request.META.get("HTTP_AUTHORIZATION", ""))
    presented = None if match is None else read_token(match[1])
    if presented is not None:
        request.META["HTTP_AUTHORIZATION"] = f"Bearer ap_{presented.id}_{HIDDEN}"
    return presented


async def _look(tokens: Tokens, token_id: str, source: str) -> Known:
    if tokens.is_expected(token_id):
        return await tokens.find(token_id)
    if not await guesses.begin(source):
        raise ProblemRaised(_too_many())
    missed = False
    try:
        known = await tokens.find(token_id)
        missed = known.facts is None
        return known
    finally:
        guesses.settle(source, missed)


def _too_many() -> HttpResponse:
    return problem(
        Problem.TOO_MANY_REQUESTS,
        429,
        "Too many tokens that do not exist came from this address; check the one you send, and try again later.",
        Retry_After="5",
    )
