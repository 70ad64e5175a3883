"""What both clients are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final, Generic, TypeVar

from asyncpoll.client.address import Ticket, address
from asyncpoll.client.calls import Calls
from asyncpoll.client.drivers import AnyDriver, Hook, Http
from asyncpoll.client.policy import PollPolicy

D = TypeVar("D", bound=AnyDriver[Any])

_DEFAULT: Final = PollPolicy()


class AnyClient(Generic[D, Http]):
    """Calls, and a driver that carries them out."""

    _drives: ClassVar[type[AnyDriver[Any]]]
    _driver: D

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        ticket: Ticket = None,
        policy: PollPolicy = _DEFAULT,
        hooks: Iterable[Hook] = (),
        http: Http | None = None,
    ) -> None:
        """`base_url` is where the server is, with the API's path if that is not `/api/v1/`.

        `token` goes with each request as Authorization. `ticket` reads one task without a token; a mapping of task ids
        to tickets, which may grow, as many as it has. `hooks` get every attempt once it is over. `http` is a client of
        your own (proxies, certificates); it is not closed. Raises Misused.
        """
        self._driver = self._drives(address(base_url, token, ticket), policy, hooks, http)  # type: ignore[assignment]
        self._calls = Calls(self._driver.to, policy)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._driver.to.base_url!r})"
