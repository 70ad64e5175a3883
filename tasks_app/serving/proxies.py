"""Whose request it is, when gateways of ours stand in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from tasks_app import conf
from tasks_app.errors import ConfigurationError

Address = IPv4Address | IPv6Address
Networks = tuple[IPv4Network | IPv6Network, ...]

_FORWARDED_FOR = b"x-forwarded-for"


def with_client(scope: dict[str, Any]) -> dict[str, Any]:
    """`scope` with the address of the client that TRUSTED_PROXIES speak for; the same one if no such proxy sent it."""
    trusted = networks(conf.current().TRUSTED_PROXIES)
    client = scope.get("client")
    if not trusted or not client:
        return scope
    peer = client[0]
    forwarded = [value for name, value in scope["headers"] if name == _FORWARDED_FOR]
    found = client_of(peer, b",".join(forwarded).decode("latin-1"), trusted)
    return scope if found == peer else {**scope, "client": (found, 0)}


def client_of(peer: str, forwarded_for: str, trusted: Networks) -> str:
    """The address that the last trusted proxy saw, of a request that came from `peer` with that X-Forwarded-For.

    Read from the right, where each proxy appends: the first address that is not a proxy's of ours. What stands left of
    it, or of what is no address, is only what somebody claims.
    """
    seen, hops = peer, forwarded_for.split(",")
    while hops and _is_trusted(seen, trusted):
        address = _parse(hops.pop())
        if address is None:
            break
        seen = str(address)
    return seen


@lru_cache(maxsize=8)
def networks(texts: tuple[str, ...]) -> Networks:
    """TRUSTED_PROXIES, parsed. Raises ConfigurationError."""
    return tuple(map(_network, texts))


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ConfigurationError(
            f"ASYNCPOLL['TRUSTED_PROXIES'] has {text!r} in it, which is no address and no network ({error}); "
            "give the addresses from which your gateways connect, for example '10.0.0.0/24'."
        ) from None


def _is_trusted(text: str, trusted: Iterable[IPv4Network | IPv6Network]) -> bool:
    address = _parse(text)
    return address is not None and any(address in network for network in trusted)


def _parse(text: str) -> Address | None:
    """Some gateways append the port."""
    text = text.strip()
    for candidate in _candidates(text):
        try:
            address = ip_address(candidate)
        except ValueError:
            continue
        mapped = getattr(address, "ipv4_mapped", None)
        return mapped or address
    return None


def _candidates(text: str) -> Sequence[str]:
    if text.startswith("["):
        return (text[1:].partition("]")[0],)
    host, colon, _ = text.partition(":")
    return (text, host) if colon and text.count(":") == 1 else (text,)
