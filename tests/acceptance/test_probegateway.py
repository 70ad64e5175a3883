"""`manage.py probegateway` against gateways that cut, by real processes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import pytest

from asyncpoll.probing import within
from tests.acceptance.processes import ROOT, ask, server
from tests.databases import created
from tests.support import free_port


@pytest.fixture(scope="module")
def url(migrated_template: str) -> Iterator[str]:
    """A database."""
    with created(os.environ["DATABASE_URL"], migrated_template) as url:
        yield url


@pytest.fixture(scope="module")
def port(url: str) -> Iterator[int]:
    """A server on it, for tests that leave it as it was."""
    with server("daphne", url) as (port, _):
        yield port


@asynccontextmanager
async def cutting_gateway(server_port: int, cut_seconds: float) -> AsyncIterator[int]:
    """A gateway that answers 504 when the server has not after `cut_seconds`. Yields its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        behind, asking = await asyncio.open_connection("127.0.0.1", server_port)
        asking.write(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        try:
            async with asyncio.timeout(cut_seconds):
                answer = await behind.read()
        except TimeoutError:
            answer = b"HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n"
        asking.close()
        with suppress(ConnectionError):
            writer.write(answer)
            writer.close()

    gateway = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with gateway:
        yield gateway.sockets[0].getsockname()[1]


async def probed(url: str, database_url: str, *options: str, **environment: str) -> tuple[int, str]:
    """The command's exit code and what it says."""
    settings = {"DATABASE_URL": database_url, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "manage.py", "probegateway", url, *options),
        cwd=ROOT,
        env={**os.environ, **settings, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


async def test_the_hold_that_a_gateway_allows_is_found(url: str, port: int) -> None:
    """One that cuts at 3 s: 2.5 s are tried, are answered, and are what to set."""
    async with cutting_gateway(port, 3.0) as gateway:
        code, said = await probed(f"http://127.0.0.1:{gateway}", url, "--most", "6")
    assert code == 0, said
    assert "(504); 2.5 s were answered each time." in said
    assert "ASYNCPOLL['MAX_HOLD_SECONDS'] is 25, which is too much. Set it to 2.5" in said
    assert said.rstrip().endswith("ASYNCPOLL_MAX_HOLD_SECONDS=2.5")


async def test_a_gateway_that_does_not_cut_leaves_the_setting(url: str) -> None:
    """Said with what was tried, and what the present setting is."""
    limit = {"ASYNCPOLL_MAX_HOLD_SECONDS": "1"}
    with server("daphne", url, **limit) as (port, _):
        code, said = await probed(f"http://127.0.0.1:{port}", url, "--most", "2", **limit)
    assert code == 0, said
    assert "Nothing cut an answer within 2 s." in said
    assert "ASYNCPOLL['MAX_HOLD_SECONDS'] is 1, which fits; up to 1.5 would." in said


async def test_a_hold_longer_than_what_was_tried_is_not_called_too_much(
    url: str, port: int
) -> None:
    """Nothing is known of it; what to try is said."""
    code, said = await probed(f"http://127.0.0.1:{port}", url, "--most", "1")
    assert code == 0, said
    assert "Nothing cut an answer within 1 s." in said
    assert "is 25; whether that fits is not known, as nothing was tried beyond 1 s." in said
    assert said.rstrip().endswith("--most 30 tells.")


async def test_only_who_has_the_projects_key_may_probe(url: str, port: int) -> None:
    """Others could hold requests longer than the settings allow."""
    answer = await ask(port, "/api/v1/probe?seconds=1&ticket=probe:1abc:forged")
    assert (answer.status, answer.json["type"]) == (403, "/problems/forbidden")
    key = {"DJANGO_SECRET_KEY": "another one, " * 5}
    code, said = await probed(f"http://127.0.0.1:{port}", url, **key)
    assert code == 1
    assert "the server does not know the ticket" in said


async def test_nobody_there_is_one_sentence(url: str) -> None:
    """With the reason."""
    code, said = await probed(f"http://127.0.0.1:{free_port()}", url)
    assert (code, "it can't be reached ([Errno 111] Connection refused)" in said) == (1, True)


@pytest.mark.parametrize(
    ("limit", "hold"), [(30, 25.0), (29, 24.0), (60, 50.0), (15, 12.5), (3, 2.5), (0.2, 0.5)]
)
def test_a_hold_leaves_room_for_the_way_there_and_back(limit: float, hold: float) -> None:
    """A sixth of the limit."""
    assert within(limit) == hold
