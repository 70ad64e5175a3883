"""Who may be held: limits of this process, of each owner and of each owner's crowd, counted over live requests only; and draining."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto

from tasks_app import conf
from tasks_app.errors import TooManyHeld
from tasks_app.events import emit
from tasks_app.hold.window import Window, grant
from tasks_app.wakeup.service import running_service
from tasks_app.wakeup.topic import Wake


@dataclass(frozen=True, slots=True)
class Account:
    """For whom a request counts. `is_crowd`: for those whom the named owner lets wait with tickets, apart from itself."""

    name: str
    is_crowd: bool = False


class Verdict(Enum):
    """What admission says to a request."""

    HOLD = auto()
    DRAINING = auto()
    SHED = auto()
    REFUSE = auto()


class Admission:
    """Counts the requests inside. One per process."""

    def __init__(self) -> None:
        self.held = 0
        self.held_by: Counter[str] = Counter()
        """The same by the route that the requests came by."""
        self.inside = 0
        self.draining = False
        self.lag_seconds = 0.0
        """How late the event loop has been lately."""
        self._accounts: Counter[Account] = Counter()
        self._ceiling: int | None = None

    @property
    def most_held(self) -> int:
        """The limit of this process: MAX_HELD, or less where the open-files limit says so."""
        limit = conf.current().MAX_HELD
        return limit if self._ceiling is None else min(limit, self._ceiling)

    def limit_to(self, most: int) -> None:
        """Hold at most so many, whatever the settings say."""
        self._ceiling = most

    def begin_drain(self) -> None:
        """Answer every held request with DRAINING, and hold no more. Called on the event loop; again does nothing."""
        if self.draining:
            return
        self.draining = True
        emit("drain.began", held=self.held)
        service = running_service()
        if service is not None:
            service.hub.wake_all(Wake.DRAINING)

    def enter(self, account: Account, wants_hold: bool, route: str = "other") -> Inside:
        """Count a request in, and out again however it ends. The verdict says whether it may be held."""
        return Inside(self, account, wants_hold, route)

    def count_in(self, account: Account, wants_hold: bool, route: str) -> tuple[Verdict, bool]:
        """The verdict, and whether the request counts as held. `count_out` must follow."""
        verdict = self._judge(account, wants_hold)
        holds = verdict is Verdict.HOLD and wants_hold
        self.inside += 1
        if holds:
            self.held += 1
            self.held_by[route] += 1
            self._accounts[account] += 1
        return verdict, holds

    def count_out(self, account: Account, holds: bool, route: str) -> None:
        """Undo `count_in`."""
        self.inside -= 1
        if holds:
            self.held -= 1
            self.held_by[route] -= 1
            self._accounts[account] -= 1
            if not self._accounts[account]:
                del self._accounts[account]

    def _judge(self, account: Account, wants_hold: bool) -> Verdict:
        if self.inside >= 2 * self.most_held:
            return Verdict.REFUSE
        if self.draining:
            return Verdict.DRAINING
        return Verdict.SHED if wants_hold and self._is_full_for(account) else Verdict.HOLD

    def _is_full_for(self, account: Account) -> bool:
        return (
            self.held >= self.most_held
            or self._has_its_share(account)
            or self.lag_seconds > conf.current().MAX_LAG_SECONDS
        )

    def _has_its_share(self, account: Account) -> bool:
        if self._accounts.get(account, 0) < conf.current().MAX_HELD_PER_OWNER:
            return False
        # A crowd of phones is not a client out of hand: it takes what nobody misses, and leaves half to the others.
        return not account.is_crowd or self.held >= self.most_held // 2


class Inside:
    """One request, while it is inside. Not a generator: held requests keep this."""

    __slots__ = ("_account", "_admission", "_holds", "_route")

    def __init__(
        self, admission: Admission, account: Account, wants_hold: bool, route: str
    ) -> None:
        self._admission, self._account = admission, account
        self._holds, self._route = wants_hold, route

    def __enter__(self) -> Verdict:
        verdict, self._holds = self._admission.count_in(self._account, self._holds, self._route)
        return verdict

    def __exit__(self, *_: object) -> None:
        self._admission.count_out(self._account, self._holds, self._route)


admission = Admission()


def granted(verdict: Verdict, asked_seconds: float) -> Window:
    """The hold that a verdict leaves of what was asked for. Raises TooManyHeld where there is room for no answer at all."""
    if verdict is Verdict.REFUSE:
        raise TooManyHeld("This process answers as many requests as it can; try again later.")
    wanted = asked_seconds if verdict is Verdict.HOLD else 0.0
    return grant(wanted, conf.current().MAX_HOLD_SECONDS)
