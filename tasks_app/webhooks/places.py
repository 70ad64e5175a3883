"""A few places for all: no owner and no host takes what the others need. Pure."""

from __future__ import annotations

from collections import Counter


class Places:
    """`most` at once, `most_each` of one host; an owner takes another one as long as it has fewer than are left.

    So the first owner has half of them at most, the next one half of the rest, and whoever comes then finds some as well.
    """

    def __init__(self, most: int, most_each: int) -> None:
        self.most_each = most_each
        self._most = most
        self._owners: Counter[str] = Counter()
        self._hosts: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """How many are."""
        return self._hosts.total()

    def is_free(self, owner: str, host: str) -> bool:
        """True when there is one for this owner and this host."""
        left = self._most - self.taken
        return self._owners[owner] < left and self._hosts[host] < self.most_each

    def take(self, owner: str, host: str) -> None:
        """One is taken."""
        self._owners[owner] += 1
        self._hosts[host] += 1

    def leave(self, owner: str, host: str) -> None:
        """It is free again."""
        self._owners -= Counter((owner,))
        self._hosts -= Counter((host,))

    def copy(self) -> Places:
        """To see how many there would be."""
        other = Places(self._most, self.most_each)
        other._owners, other._hosts = self._owners.copy(), self._hosts.copy()
        return other
