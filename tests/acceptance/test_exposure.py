"""What real servers do not start with, what they log, and what a deployment's check says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable
from pathlib import Path

import pytest

from tests.acceptance.processes import ROOT, server
from tests.holdsite.client import Connection
from tests.places import newcomers_environment
from tests.support import aeventually, free_port

COMMANDS = {
    "daphne": ["manage.py", "serve", "--host", "127.0.0.1", "--port"],
    "uvicorn": ["-m", "uvicorn", "asyncpoll.asgi:application", "--port"],
    "granian": ["-m", "granian", "--interface", "asgi", "asyncpoll.asgi:application", "--port"],
}


def start(
    command: list[str], database_url: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Start it and wait for its end."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": database_url,
            "DJANGO_SETTINGS_MODULE": "asyncpoll.settings",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("kind", COMMANDS)
def test_no_server_starts_with_anonymous_use_for_the_public(kind: str, database_url: str) -> None:
    """One sentence with the remedy, and an exit code that a supervisor sees."""
    done = start(
        [*COMMANDS[kind], str(free_port())],
        database_url,
        ASYNCPOLL_ANONYMOUS="1",
        DJANGO_ALLOWED_HOSTS="example.org",
    )
    said = done.stdout + done.stderr
    assert done.returncode != 0, said
    assert "ALLOWED_HOSTS has 'example.org'" in said and "ASYNCPOLL_ANONYMOUS" in said


def test_serve_does_not_listen_for_others_with_settings_of_a_desk(database_url: str) -> None:
    """A sentence for each, before it listens."""
    done = start(
        ["manage.py", "serve", "--host", "0.0.0.0", "--port", str(free_port())],
        database_url,
        ASYNCPOLL_ANONYMOUS="1",
        DJANGO_DEBUG="1",
        DJANGO_SECRET_KEY="django-insecure-change-me",
    )
    assert done.returncode == 1
    for says in ("Anonymous use is on", "DEBUG is on", "SECRET_KEY is a default"):
        assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_deployment_by_the_environment_has_nothing_to_warn_of(tmp_path: Path) -> None:
    """`check --deploy`, where every warning counts."""
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error::UserWarning",
            "manage.py",
            "check",
            "--deploy",
            "--fail-level",
            "WARNING",
        ],
        cwd=ROOT,
        env=newcomers_environment(
            DJANGO_SECURE="1", DJANGO_ALLOWED_HOSTS="example.org", ASYNCPOLL_DATA_DIR=str(tmp_path)
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues (0 silenced)" in done.stdout


@pytest.mark.parametrize("proxies", ["", "127.0.0.1"])
@pytest.mark.parametrize("kind", ["daphne", "uvicorn"])
async def test_a_servers_own_log_has_no_ticket(
    kind: str, proxies: str, database_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Access logs print addresses with their query; also of a request that a proxy has passed on."""
    more = {"access_log": "1"} if kind == "uvicorn" else {}
    with server(kind, database_url, **more, ASYNCPOLL_TRUSTED_PROXIES=proxies) as (port, _):
        for path in ("/api/v1/tasks/x?ticket=s3cr3t&a=1", "/api/v1/nope?a=2&%74icket=s3cr3t"):
            connection = await Connection.open(port)
            await connection.ask(path, extra="X-Forwarded-For: 192.0.2.7\r\n")
            await connection.answer()
            connection.hang_up()
    said = "".join(capfd.readouterr())
    assert "s3cr3t" not in said
    if kind == "uvicorn":
        assert "/api/v1/tasks/x?ticket=[hidden]&a=1" in said


async def test_what_the_server_itself_answers_has_security_headers(database_url: str) -> None:
    """A request that is none, a line that is too long, and WebSockets, which nobody here speaks."""
    upgrade = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    with server("daphne", database_url) as (port, _):
        for raw, status in (
            (b"nonsense\r\n\r\n", 400),
            (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", 431),
            (upgrade + key + b"\r\n", 403),
            (upgrade + b"\r\n", 400),
        ):
            connection = await Connection.open(port)
            await connection.send(raw)
            answer = await connection.answer()
            assert (answer.status, answer.json["status"]) == (status, status)
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            connection.hang_up()


async def test_a_revocation_reaches_every_process(database_url: str) -> None:
    """Each had seen the token, and would believe it for a minute."""
    made = start(["manage.py", "createtoken", "--owner", "alice"], database_url)
    assert made.returncode == 0, made.stderr
    token = made.stdout.strip()
    assert token not in made.stderr

    async def status(port: int) -> int:
        connection = await Connection.open(port)
        try:
            await connection.ask("/api/v1/tasks", extra=f"Authorization: Bearer {token}\r\n")
            return (await connection.answer()).status
        finally:
            connection.hang_up()

    with server("daphne", database_url) as (one, _), server("uvicorn", database_url) as (other, _):
        for port in (one, other):
            assert await status(port) == 200
        done = start(["manage.py", "revoketoken", token], database_url)
        assert done.returncode == 0, done.stderr
        for port in (one, other):
            await aeventually(lambda port=port: _is(401, status(port)))


async def _is(wanted: int, asked: Awaitable[int]) -> bool:
    return await asked == wanted
