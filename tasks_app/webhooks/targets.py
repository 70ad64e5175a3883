"""Where an end may be told. Pure: what a name stands for is looked at elsewhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from tasks_app.errors import NotifyRefused
from tasks_app.store import Target
from tasks_app.webhooks.addresses import is_public, literal

MOST_CHARACTERS = 2_000
_PORT = 443
# Below lie other services, some of which take what is sent to them for their own.
_FIRST_FREE_PORT = 1_024
_LONGEST_NAME, _LONGEST_LABEL = 253, 63
_ADDRESS = re.compile(
    r"(?i:https)://(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>[/?][A-Za-z0-9._~:/?@!$&'()*+,;=%\[\]-]*)?"
)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?")
# Names that only mean something inside.
_INSIDE = ("localhost", "local", "internal", "intranet", "lan", "home.arpa", "invalid", "test")


@dataclass(frozen=True, slots=True)
class Hook:
    """The address of a webhook, taken apart once: nothing reads its text in another way afterwards."""

    host: str
    port: int
    path: str
    is_for_tests: bool = False

    @property
    def authority(self) -> str:
        """Host and port as a URL and the Host header have them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORT else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The address, always written the same way."""
        return f"https://{self.authority}{self.path}"


def read(url: str, test_hosts: Collection[str] = ()) -> Hook:
    """The webhook at `url`. Raises NotifyRefused unless it is https, at a port and a host that anybody may be sent to.

    `test_hosts` are taken as they are.
    """
    if not url.lower().startswith("https://"):
        raise _refused(url, "must begin with https://")
    found = _ADDRESS.fullmatch(url) if len(url) <= MOST_CHARACTERS else None
    if found is None:
        raise _refused(
            url,
            f"must be https://HOST[:PORT][/PATH][?QUERY] of at most {MOST_CHARACTERS:,} characters, without a user, a "
            "fragment or anything that has to be percent-encoded, and with a name in its ASCII form (xn--…)",
        )
    host, path = found["host"].lower(), found["path"] or "/"
    port = int(found["port"] or _PORT)
    path = path if path.startswith("/") else f"/{path}"
    if host.strip("[]") in test_hosts:
        return Hook(host.strip("[]"), port, path, is_for_tests=True)
    if port != _PORT and not _FIRST_FREE_PORT <= port <= 65_535:
        raise _refused(url, f"must use port {_PORT}, or one from {_FIRST_FREE_PORT} to 65535")
    return Hook(_public_host(url, host), port, path)


def webhook(url: str, test_hosts: Collection[str] = ()) -> Target:
    """The target that `url` is. Raises NotifyRefused like `read`."""
    hook = read(url, test_hosts)
    return Target(hook.url, hook.host, _key(hook.url))


def _public_host(url: str, host: str) -> str:
    try:
        address = literal(host)
    except ValueError:
        address, host = None, ""
    if address is not None and is_public(str(address)):
        return str(address)
    if address is not None or not _is_public_name(host):
        raise _refused(
            url,
            "must name a host of the public internet, by a full name without a final dot, or by a public address in "
            "its usual notation",
        )
    return host


def _is_public_name(host: str) -> bool:
    labels = host.split(".")
    return (
        len(host) <= _LONGEST_NAME
        and len(labels) > 1
        and all(len(label) <= _LONGEST_LABEL and _LABEL.fullmatch(label) for label in labels)
        and not any(host.endswith(f".{suffix}") for suffix in _INSIDE)
    )


def _refused(url: str, rule: str) -> NotifyRefused:
    shown = url if len(url) <= 60 else f"{url[:57]}..."
    return NotifyRefused(f"webhook is {shown!r}; it {rule}.", "webhook")


def _key(address: str) -> UUID:
    return UUID(bytes=hashlib.sha256(address.encode()).digest()[:16])


INBOX = Target("", "", _key(""))
"""The inbox of the task's owner."""
