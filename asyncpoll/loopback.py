"""Which names and addresses are this machine's own."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """True if `host`, a name or an address, is this machine for itself: nobody else can reach it there."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    # ::ffff:127.0.0.1 is a client over IPv4 on a socket for both; Python 3.13 looks inside by itself.
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
