"""Where a request comes from, as limits count it."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from django.http import HttpRequest

# Whoever has one address of IPv6 has all that begin like it, and can take another for each request.
_HOST_BITS = 64
# Longer than any address.
_MOST_CHARACTERS = 64


def source_of(request: HttpRequest) -> str:
    """The client's address; of one of IPv6, the network that a single customer is given (/64)."""
    address = request.META.get("REMOTE_ADDR") or ""
    return _source(address) if len(address) <= _MOST_CHARACTERS else ""


@lru_cache(maxsize=10_000)
def _source(text: str) -> str:
    try:
        address = ip_address(text)
    except ValueError:
        return text
    if not isinstance(address, IPv6Address):
        return text
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> _HOST_BITS << _HOST_BITS)}/{_HOST_BITS}"
