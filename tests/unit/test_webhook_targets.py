"""Where webhooks may go: nothing but the public internet, in whatever notation somebody writes the rest."""

from __future__ import annotations

import ipaddress
import socket

import pytest

from tasks_app.errors import NotifyRefused
from tasks_app.webhooks import lookups
from tasks_app.webhooks.addresses import is_public
from tasks_app.webhooks.targets import INBOX, read, webhook

INSIDE = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.170",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "233.252.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::808:808",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd12:3456:789a::1",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700::1111%eth0",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "no address",
]
OUTSIDE = ["8.8.8.8", "1.1.1.1", "93.184.215.14", "2606:4700::1111", "2a00:1450:4001::8a"]


@pytest.mark.parametrize("address", INSIDE)
def test_what_is_not_public_is_refused(address):
    """By us, whatever this release of Python thinks of it; and as a URL's host."""
    assert not is_public(address)
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(NotifyRefused):
        read(f"https://{host}/")


@pytest.mark.parametrize("address", OUTSIDE)
def test_what_is_public_is_taken(address):
    """As an address, and as a URL's host."""
    assert is_public(address)
    host = f"[{address}]" if ":" in address else address
    assert read(f"https://{host}/x").host == str(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "134744072",
        "0x7f000001",
        "0x7f.0.0.1",
        "0X7F.1",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.1",
        "8.8.2056",
        "08.8.8.8",
        "1.2.3.4.5",
        "8.8.8.256",
        "127.0.0.1.",
        "8.8.8.8.",
        "0x7f.0.0.0x1",
        "foo.0x7f",
        "foo.1",
        "localhost",
        "localhost.",
        "LOCALHOST",
        "a.localhost",
        "metadata",
        "metadata.google.internal",
        "printer.local",
        "router.lan",
        "nas.home.arpa",
        "x.test",
        "example.com.",
        "example..com",
        ".example.com",
        "-a.example.com",
        "a-.example.com",
        "a" * 64 + ".example.com",
        ".".join(["a" * 60] * 5),
        "[::1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[fe80::1%25eth0]",
        "[127.0.0.1]",
        "[v1.x]",
        "[]",
        "::1",
        "example.com%2f",
        "exa%6dple.com",
        "ex\u0430mple.com",
        "example.com\u3002",
        "\u2460.example.com",
        "127\u30020\u30020\u30021",
        "user@example.com",
        "user:secret@example.com",
        "example.com@127.0.0.1",
        "127.0.0.1#@example.com",
        "example.com\\@127.0.0.1",
        "example.com:",
        "example.com:0",
        "example.com:22",
        "example.com:25",
        "example.com:80",
        "example.com:1023",
        "example.com:65536",
        "example.com:-1",
        "example.com:4 43",
        "example.com:0x1bb",
        "",
        " example.com",
        "example.com\t",
        "exam\nple.com",
        "example.com\x00",
    ],
)
def test_a_host_in_disguise_is_refused(host):
    """Other notations of numbers, names of the inside, users, escapes, ports of other services."""
    with pytest.raises(NotifyRefused) as refused:
        read(f"https://{host}/")
    assert refused.value.parameter == "webhook"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://example.com/",
        "//example.com/",
        "example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https:example.com",
        "https:/example.com",
        "https:///example.com",
        "https://example.com/#fragment",
        "https://example.com/a b",
        "https://example.com/\r\nX: y",
        "https://example.com/ä",
        " https://example.com/",
        "https://example.com/" + "a" * 2_000,
    ],
)
def test_what_is_no_https_address_is_refused(url):
    """The rule is said, and what it was that broke it."""
    with pytest.raises(NotifyRefused, match="webhook is ") as refused:
        read(url)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://Example.COM:443/A?b=C", "https://example.com/A?b=C"),
        ("https://example.com?x", "https://example.com/?x"),
        ("https://example.com:8443/a%20b;c@d", "https://example.com:8443/a%20b;c@d"),
        ("https://xn--exmple-cua.example:65535/", "https://xn--exmple-cua.example:65535/"),
        ("https://[2606:4700:0::1111]:443/", "https://[2606:4700::1111]/"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
    ],
)
def test_an_address_is_always_written_the_same_way(url, written):
    """So that the same target twice is one delivery."""
    assert read(url).url == written
    assert webhook(url) == webhook(written) != INBOX


def test_hosts_for_tests_are_taken_as_they_are():
    """And no others."""
    hook = read("https://localhost:9/x", ("localhost", "::1"))
    assert (hook.host, hook.port, hook.is_for_tests) == ("localhost", 9, True)
    assert read("https://[::1]:8443/", ("::1",)).authority == "[::1]:8443"
    with pytest.raises(NotifyRefused):
        read("https://localhost.localhost/", ("localhost",))


@pytest.mark.parametrize("inside", ["127.0.0.1", "::1", "169.254.169.254", "::ffff:10.0.0.1"])
async def test_a_name_that_stands_for_the_inside_as_well_is_refused(inside, monkeypatch):
    """However many public addresses it has besides, and whatever alias leads there."""
    monkeypatch.setattr(socket, "getaddrinfo", answering("8.8.8.8", inside))
    with pytest.raises(lookups.AddressRefused):
        await lookups.addresses_of(read("https://rebound.example.com/"), "acme")


async def test_a_public_name_is_looked_up_once(monkeypatch):
    """In the resolver's order, each address once."""
    monkeypatch.setattr(socket, "getaddrinfo", answering("8.8.8.8", "2606:4700::1111", "8.8.8.8"))
    found = await lookups.addresses_of(read("https://hooks.example.com/"), "acme")
    assert found == ["8.8.8.8", "2606:4700::1111"]


async def test_a_name_that_is_not_there_says_so(monkeypatch):
    """Also where encoding it fails, and not by raising what nobody expects."""

    def missing(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", missing)
    with pytest.raises(lookups.LookupFailed, match="not known"):
        await lookups.addresses_of(read("https://nowhere.example.com/"), "acme")


def answering(*addresses):
    """A resolver that knows one answer."""

    def getaddrinfo(host, port, **_):
        return [
            (
                socket.AF_INET6 if ":" in address else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (address, port),
            )
            for address in addresses
        ]

    return getaddrinfo
