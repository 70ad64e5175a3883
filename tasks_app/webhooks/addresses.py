"""Which addresses may be connected to: those of the public internet, whatever notation they hide in. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

# Python's own idea of "global" has moved between its releases, and takes some of these for global: written out, they
# are refused by all. Multicast, the loopback, private, shared, link-local and documentation ranges come on top.
_NEVER = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "192.0.0.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "224.0.0.0/3",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "2620:4f:8000::/48",
        "3fff::/20",
    )
)
# All that is assigned to the public. IPv4 in IPv6's clothes is outside: mapped, compatible, translated (64:ff9b::).
_UNICAST = IPv6Network("2000::/3")


def is_public(text: str) -> bool:
    """May a webhook be sent to this address? False for what is none."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and (address not in _UNICAST or address.scope_id):
        return False
    if address.is_multicast or address.is_reserved or not address.is_global:
        return False
    return not any(address in network for network in _NEVER if network.version == address.version)


def literal(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a URL's host is, None: it is a name. Raises ValueError for an address in another notation.

    A host whose last label is a number is an address to whoever resolves it: 2130706433, 0x7f.1 and 127.1 are all
    127.0.0.1 somewhere. Only the usual four decimal numbers are taken for what they are.
    """
    if host.startswith("["):
        return IPv6Address(host.removeprefix("[").removesuffix("]"))
    last = host.rstrip(".").rpartition(".")[2]
    if last.isdecimal() or last.lower().startswith("0x"):
        return IPv4Address(host)
    return None
