"""Whether a failed attempt is followed by another, and after how long."""

from __future__ import annotations

from dataclasses import dataclass

from tasks_app.errors import LONGEST_DELAY_SECONDS, InvalidTask, LeaseLost, Retry

# 2 to this power exceeds any cap, and still is a float.
_LARGEST_EXPONENT = 60


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential with full jitter: anything from 0 to `base` seconds after the first failure, to twice that after the
    second, and so on up to `cap` seconds. Raises InvalidTask for values that break a rule.
    """

    base: float
    cap: float = 600.0

    def __post_init__(self) -> None:
        if not 0 <= self.base <= self.cap <= LONGEST_DELAY_SECONDS:
            raise InvalidTask(
                f"Backoff({self.base}, {self.cap}): both are seconds, base is 0 or more and cap is base or more, at most "
                f"{LONGEST_DELAY_SECONDS} (a year), for example Backoff(base=2, cap=300)."
            )

    def delay(self, failures: int, jitter: float) -> float:
        """Seconds before the next attempt.

        Formula: jitter · min(cap, base · 2^failures), with `failures` before this one and `jitter` from 0 to 1.
        """
        return jitter * min(self.cap, self.base * 2.0 ** min(failures, _LARGEST_EXPONENT))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Which errors of a task are worth another attempt, and the delays between attempts."""

    backoff: Backoff
    retry_on: tuple[type[BaseException], ...] = (BaseException,)

    def covers(self, error: type[BaseException] | None) -> bool:
        """Is an attempt that ended with `error` tried again? A time-out (None) or a lost lease is no error of the
        task's: it is."""
        return error is None or issubclass(error, (Retry, LeaseLost, *self.retry_on))
