"""Webhooks, sent for real: what arrives, what does not, and what is recorded."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from asyncpoll.contract import Status
from tasks_app import conf
from tasks_app.models import Delivery, DeliveryAttempt
from tasks_app.observers import logs
from tasks_app.store import Target, keep_webhook_secret, lock_task, promise, step
from tasks_app.store import deliveries as store_deliveries
from tasks_app.upkeep import Deliveries
from tasks_app.upkeep import deliveries as upkeep_deliveries
from tasks_app.wakeup.service import WakeupService
from tasks_app.webhooks import patience, sending
from tasks_app.webhooks.signing import make_secret
from tasks_app.webhooks.targets import INBOX, webhook
from tests.integration.api_support import stored
from tests.receivers import Authority, Receiver, receiver
from tests.support import aeventually

HOSTS = ("localhost", "127.0.0.1", "hooks.test", "dead.test")
NAMES = ("localhost", "hooks.test")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def hooks(authority: Authority, settings: Any, monkeypatch: Any) -> Iterator[Receiver]:
    """A receiver that is trusted, at hosts that are let through although they are not public."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.trusted))
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WEBHOOK_TEST_HOSTS": HOSTS}
    with receiver(authority.context(*NAMES)) as running:
        yield running


@pytest.fixture
async def secret(service: WakeupService) -> str:
    """What the owner without a name signs with."""
    text, kept = make_secret("")
    await service.pool.run(keep_webhook_secret("", kept, replace=False))
    return text


@pytest.fixture
def quick(monkeypatch: Any) -> None:
    """The next attempt comes at once."""
    monkeypatch.setattr(patience, "_FIRST_SECONDS", 0.0)


@asynccontextmanager
async def delivering(service: WakeupService) -> AsyncIterator[Deliveries]:
    """The loop, running."""
    loop = Deliveries(service.pool)
    loop.start()
    try:
        yield loop
    finally:
        await loop.stop()


async def ended(
    service: WakeupService, *urls: str, result: str = '{"n": 1}', owner: str = ""
) -> UUID:
    """A task whose end is owed to these addresses."""
    task_id = await stored(service, owner=owner)
    hosts = conf.current().WEBHOOK_TEST_HOSTS or HOSTS
    for url in urls:
        await owe(service, task_id, webhook(url, hosts))
    await service.pool.run(step(task_id, Status.SUCCESS, result=result))
    return task_id


async def owe(service: WakeupService, task_id: UUID, target: Target) -> None:
    async with service.pool.transaction() as transaction:
        await transaction.run(lock_task(task_id))
        await transaction.run(promise(task_id, target))


async def over(count: int = 1) -> list[Delivery]:
    """The deliveries, once so many are over."""

    async def found() -> list[Delivery]:
        rows = [row async for row in Delivery.objects.order_by("id") if row.finished_at]
        return rows if len(rows) == count else []

    return await aeventually(found)


async def attempts() -> list[tuple[int, int | None, str]]:
    return [
        (each.number, each.status, each.error)
        async for each in DeliveryAttempt.objects.order_by("delivery_id", "number")
    ]


async def failed(service: WakeupService, url: str) -> str:
    """How the only attempt to send there fails."""
    await ended(service, url)
    async with delivering(service):
        [delivery] = await over()
    assert delivery.state == "FAILED"
    [(_, _, error)] = await attempts()
    assert delivery.last_error == error
    return error


@pytest.fixture
def once(settings: Any) -> None:
    """Nothing is tried again."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WEBHOOK_RETRY_SECONDS": 0.0}


async def test_what_arrives_is_signed_and_says_what_ended(service, hooks, secret):
    """By the library that receivers use, with the secret that was told once; the name is what TLS asks for."""
    task_id = await ended(service, f"https://localhost:{hooks.port}/done?who=acme")
    async with delivering(service):
        [delivery] = await over()
    [received] = hooks.received
    message = Webhook(secret).verify(received.body, dict(received.headers))
    assert received.path == "/done?who=acme"
    assert received.headers["host"] == f"localhost:{hooks.port}"
    assert received.headers["content-type"] == "application/json"
    assert received.headers["webhook-id"] == str(delivery.id)
    assert message["type"] == "task.succeeded"
    assert (
        message["data"].items()
        >= {
            "delivery_id": str(delivery.id),
            "task_id": str(task_id),
            "task": "sample.add",
            "status": "SUCCESS",
            "result": {"n": 1},
            "result_apart": False,
            "error": None,
        }.items()
    )
    assert hooks.asked_for == ["localhost"]
    assert delivery.state == "DELIVERED"
    assert await attempts() == [(1, 204, "")]
    attempt = await DeliveryAttempt.objects.aget()
    assert 0 < attempt.duration_ms < 10_000


async def test_a_large_result_is_left_to_be_fetched(service, hooks, secret):
    """A receiver need not take a megabyte that it did not ask for."""
    result = json.dumps("x" * 100_000)
    await ended(service, f"https://localhost:{hooks.port}/", result=result)
    async with delivering(service):
        await over()
    data = json.loads(hooks.received[0].body)["data"]
    assert (data["result"], data["result_apart"]) == (None, True)


async def test_an_address_that_was_looked_at_is_the_one_connected_to(
    service, hooks, secret, monkeypatch
):
    """Looked up once: what the name stands for a moment later plays no part, and TLS still checks the name."""
    lookups_made = []

    def getaddrinfo(host, port, **_):
        lookups_made.append(host)
        address = "127.0.0.1" if len(lookups_made) == 1 else "203.0.113.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    await ended(service, f"https://hooks.test:{hooks.port}/")
    async with delivering(service):
        [delivery] = await over()
    assert delivery.state == "DELIVERED"
    assert lookups_made == ["hooks.test"]
    assert hooks.asked_for == ["hooks.test"]


async def test_a_name_that_has_moved_inside_is_not_followed(
    service, hooks, secret, settings, once, monkeypatch
):
    """It was public when it was asked for: each sending looks for itself."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WEBHOOK_TEST_HOSTS": ()}
    monkeypatch.setattr(socket, "getaddrinfo", resolving("127.0.0.1"))
    assert await failed(service, f"https://rebound.example.com:{hooks.port}/") == "AddressRefused"
    assert hooks.asked_for == []


async def test_a_test_host_that_is_none_any_more_is_refused(service, hooks, secret, settings, once):
    """What the settings allow is asked at each sending, too."""
    await ended(service, f"https://localhost:{hooks.port}/")
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WEBHOOK_TEST_HOSTS": ()}
    async with delivering(service):
        await over()
    assert [error for _, _, error in await attempts()] == ["NotifyRefused"]
    assert hooks.asked_for == []


async def test_a_certificate_of_another_name_is_refused(service, hooks, secret, once):
    """127.0.0.1 is not in it."""
    assert await failed(service, f"https://127.0.0.1:{hooks.port}/") == "CertificateRefused"
    assert hooks.received == []


async def test_the_name_is_checked_and_not_the_address_that_it_stands_for(
    service, hooks, secret, once, monkeypatch
):
    """Who answers at dead.test's address has a certificate of another name."""
    monkeypatch.setattr(socket, "getaddrinfo", resolving("127.0.0.1"))
    assert await failed(service, f"https://dead.test:{hooks.port}/") == "CertificateRefused"
    assert hooks.asked_for == ["dead.test"]
    assert hooks.received == []


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    service, hooks, secret, once, monkeypatch
):
    """Without the authority, the same server is anybody."""
    monkeypatch.delenv("SSL_CERT_FILE")
    assert await failed(service, f"https://localhost:{hooks.port}/") == "CertificateRefused"
    assert hooks.received == []


async def test_a_redirect_is_a_failure(service, hooks, secret, once):
    """Wherever it leads."""

    def redirect(handler):
        handler.send_response(302)
        handler.send_header("Location", f"https://localhost:{hooks.port}/elsewhere")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    hooks.answers["/"] = redirect
    assert await failed(service, f"https://localhost:{hooks.port}/") == "HTTP 302"
    assert [each.path for each in hooks.received] == ["/"]


async def test_the_environments_proxy_plays_no_part(service, hooks, secret, monkeypatch):
    """It could reach what we may not."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    await ended(service, f"https://localhost:{hooks.port}/")
    async with delivering(service):
        [delivery] = await over()
    assert delivery.state == "DELIVERED"


async def test_the_body_of_an_answer_is_left_unread(service, hooks, secret):
    """However long it is, and however slowly it comes."""

    def endless(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain")
        handler.end_headers()
        while not hooks.closing.wait(0.01):
            handler.wfile.write(b"x" * 1_000)

    hooks.answers["/"] = endless
    await ended(service, f"https://localhost:{hooks.port}/")
    async with delivering(service):
        [delivery] = await over()
    assert delivery.state == "DELIVERED"
    stored_texts = [
        *(await DeliveryAttempt.objects.values_list("error").aget()),
        delivery.last_error,
    ]
    assert stored_texts == ["", ""]


@pytest.mark.parametrize("way", ["silent", "trickle", "no handshake"])
async def test_an_attempt_has_ten_seconds(service, hooks, secret, once, monkeypatch, way):
    """All together, from the look-up to the status: shortened here."""
    assert sending.ATTEMPT_SECONDS == 10.0
    monkeypatch.setattr(sending, "ATTEMPT_SECONDS", 0.4)

    def trickle(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not hooks.closing.wait(0.05):
            handler.wfile.write(b"X-More: 1\r\n")

    hooks.answers["/"] = trickle if way == "trickle" else lambda handler: hooks.closing.wait(20)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1] if way == "no handshake" else hooks.port
        assert await failed(service, f"https://localhost:{port}/") == "Timeout"


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\n" + b"X-More: " + b"x" * 1_000_000,
        b"HTTP/1.1 200 OK\r\n" + b"X-More: 1\r\n" * 100_000,
        b"x" * 1_000_000,
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"",
    ],
    ids=["a huge header", "huge headers", "a line without an end", "no HTTP", "nothing"],
)
async def test_an_answer_that_is_none_is_a_failure(service, hooks, secret, once, said):
    """Whatever its size: of the receiver's words nothing is kept."""

    def answer(handler):
        handler.close_connection = True
        handler.wfile.write(said)

    hooks.answers["/"] = answer
    assert await failed(service, f"https://localhost:{hooks.port}/") == "RemoteProtocolError"


async def test_an_end_without_end_of_informational_answers_takes_no_more_than_its_time(
    service, hooks, secret, once, monkeypatch
):
    """Each of them is allowed; all of them together are no answer."""
    monkeypatch.setattr(sending, "ATTEMPT_SECONDS", 0.4)

    def informing(handler):
        while not hooks.closing.is_set():
            handler.wfile.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)

    hooks.answers["/"] = informing
    assert await failed(service, f"https://localhost:{hooks.port}/") == "Timeout"


async def test_a_fault_of_ours_is_an_attempt_like_any_other(
    service, hooks, secret, quick, settings, emitted, monkeypatch
):
    """It is on record, said aloud without its words, tried again, and given up in the end: never sent for ever."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WEBHOOK_RETRY_SECONDS": 0.5}

    def broken(*_):
        raise KeyError("whsec_secret")

    monkeypatch.setattr(sending, "sign", broken)
    await ended(service, f"https://localhost:{hooks.port}/")
    async with delivering(service):
        [delivery] = await over()
    assert (delivery.state, delivery.last_error) == ("FAILED", "KeyError")
    made = await attempts()
    assert [number for number, _, _ in made] == list(range(1, delivery.attempts + 1))
    assert len(made) > 1
    assert hooks.received == []
    told = emitted.of("delivery.broke")
    assert len(told) == len(made)
    assert "sending.py:" in told[0]["place"] or "test_webhooks.py:" in told[0]["place"]
    assert "whsec" not in str(told)


async def test_a_host_that_is_not_there_is_a_failure(service, hooks, secret, once):
    """With the class of the error and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    assert await failed(service, f"https://127.0.0.1:{port}/") == "ConnectError"


async def test_what_is_not_taken_is_sent_again_under_the_same_id(
    service, hooks, secret, quick, emitted
):
    """Until it is; each attempt is recorded."""
    answers = iter([500, 429, 200])
    hooks.answers["/"] = lambda handler: _answer(handler, next(answers))
    await ended(service, f"https://localhost:{hooks.port}/")
    async with delivering(service):
        [delivery] = await over()
    assert (delivery.state, delivery.attempts, delivery.last_error) == ("DELIVERED", 3, "")
    assert await attempts() == [(1, 500, "HTTP 500"), (2, 429, "HTTP 429"), (3, 200, "")]
    assert {each.headers["webhook-id"] for each in hooks.received} == {str(delivery.id)}
    assert len({each.body for each in hooks.received}) == 1
    assert [facts["error"] for facts in emitted.of("delivery.failed")] == ["HTTP 500", "HTTP 429"]
    assert [facts["attempt"] for facts in emitted.of("delivery.sent")] == [3]


async def test_it_is_given_up_in_the_end(service, hooks, secret, quick, settings, emitted):
    """WEBHOOK_RETRY_SECONDS after it was due; a receiver that says 410 is not asked again at all."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WEBHOOK_RETRY_SECONDS": 0.5}
    hooks.answers |= {"/broken": 500, "/gone": 410}
    base = f"https://localhost:{hooks.port}"
    await ended(service, f"{base}/broken", f"{base}/gone")
    async with delivering(service):
        deliveries = await over(2)
    assert {each.state for each in deliveries} == {"FAILED"}
    assert len(hooks.at("/gone")) == 1
    assert len(hooks.at("/broken")) > 1
    assert len(emitted.of("delivery.abandoned")) == 2


async def test_a_dead_host_does_not_hold_up_the_others(service, hooks, secret, emitted):
    """Twenty for a host that takes connections and says nothing, before one for another: that one arrives meanwhile."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as dead:
        for _ in range(4):
            await ended(
                service,
                *(f"https://127.0.0.1:{dead.getsockname()[1]}/{number}" for number in range(5)),
            )
        await ended(service, f"https://localhost:{hooks.port}/")
        async with delivering(service) as loop:
            # Its own place is free again in a moment; the other host has an eighth of them, whoever came first.
            await aeventually(
                lambda: emitted.of("delivery.sent") and loop._places._hosts == {"127.0.0.1": 4}
            )
            assert not emitted.of("delivery.failed")


async def test_many_dead_hosts_leave_places_to_others(
    service, hooks, secret, settings, emitted, monkeypatch
):
    """Places that a host has nothing for are others' at once, not when somebody looks again."""
    monkeypatch.setattr(upkeep_deliveries, "_EVERY_SECONDS", 60.0)
    dead_hosts = [f"127.0.0.{number}" for number in range(2, 14)]
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WEBHOOK_TEST_HOSTS": ["localhost", *dead_hosts]}
    with socket.create_server(("0.0.0.0", 0), backlog=50) as dead:
        port = dead.getsockname()[1]
        for host in dead_hosts:
            await ended(service, f"https://{host}:{port}/")
        await ended(service, *(f"https://localhost:{hooks.port}/{number}" for number in range(4)))
        async with delivering(service):
            await aeventually(lambda: len(emitted.of("delivery.sent")) == 4)
            assert not emitted.of("delivery.failed")


async def test_the_dead_hosts_of_an_owner_leave_places_to_other_owners(
    service, hooks, settings, emitted
):
    """It has half of them, though it has a host for each and was there first. What arrives is signed by its own owner."""
    dead_hosts = [f"127.0.0.{number}" for number in range(2, 42)]
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WEBHOOK_TEST_HOSTS": ["localhost", *dead_hosts]}
    secrets = {owner: make_secret(owner) for owner in ("acme", "zenith")}
    for owner, (_, kept) in secrets.items():
        await service.pool.run(keep_webhook_secret(owner, kept, replace=False))
    with socket.create_server(("0.0.0.0", 0), backlog=50) as dead:
        urls = [f"https://{host}:{dead.getsockname()[1]}/" for host in dead_hosts]
        for start in range(0, 40, 5):
            await ended(service, *urls[start : start + 5], owner="acme")
        async with delivering(service) as loop:
            await aeventually(lambda: loop._places.taken == 16)
            await ended(service, f"https://localhost:{hooks.port}/", owner="zenith")
            loop.wake()
            await aeventually(lambda: emitted.of("delivery.sent"))
            assert not emitted.of("delivery.failed")
    [received] = hooks.received
    assert Webhook(secrets["zenith"][0]).verify(received.body, dict(received.headers))
    with pytest.raises(WebhookVerificationError):
        Webhook(secrets["acme"][0]).verify(received.body, dict(received.headers))


async def test_more_hosts_than_one_look_takes_in_all_have_their_turn(
    service, secret, settings, monkeypatch
):
    """One look after the other, although those that were seen first are still being sent."""
    for module in (store_deliveries, upkeep_deliveries):
        monkeypatch.setattr(module, "MOST_ROUTES", 2)
    monkeypatch.setattr(upkeep_deliveries, "_EVERY_SECONDS", 60.0)
    hosts = [f"127.0.0.{number}" for number in range(2, 7)]
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WEBHOOK_TEST_HOSTS": hosts}
    with socket.create_server(("0.0.0.0", 0)) as silent:
        port = silent.getsockname()[1]
        await ended(service, *(f"https://{host}:{port}/" for host in hosts))
        async with delivering(service) as loop:
            await aeventually(lambda: loop._places._hosts == dict.fromkeys(hosts, 1))


async def test_a_new_secret_signs_beside_the_old_one(service, hooks, secret, settings):
    """For a day. Both come out right although SECRET_KEY has changed meanwhile, as long as the old one is a fallback."""
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another" * 10
    newer, kept = make_secret("")
    assert await service.pool.run(keep_webhook_secret("", kept, replace=True))
    await ended(service, f"https://localhost:{hooks.port}/")
    async with delivering(service):
        await over()
    [received] = hooks.received
    for text in (secret, newer):
        assert Webhook(text).verify(received.body, dict(received.headers))


@pytest.mark.parametrize("how", ["never made", "another SECRET_KEY"])
async def test_nothing_is_sent_unsigned(service, hooks, settings, once, how):
    """Where the secret is missing, or can't be had any more, that is the error."""
    if how == "another SECRET_KEY":
        _, kept = make_secret("")
        await service.pool.run(keep_webhook_secret("", kept, replace=False))
        settings.SECRET_KEY = "another" * 10
    assert await failed(service, f"https://localhost:{hooks.port}/") == "SecretMissing"
    assert hooks.asked_for == []


async def test_webhooks_that_are_switched_off_wait(service, hooks, secret, settings):
    """Inboxes are filled all the same."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WEBHOOKS": False}
    task_id = await ended(service, f"https://localhost:{hooks.port}/")
    await owe(service, task_id, INBOX)
    async with delivering(service):
        [inbox] = await over()
    assert inbox.host == ""
    assert hooks.asked_for == []


async def test_neither_secrets_nor_paths_are_logged(service, hooks, secret, once, caplog):
    """At any level, taken or not; nor do events carry them."""
    caplog.set_level(logging.DEBUG)
    end = logs.install()
    try:
        hooks.answers["/token-9f2c"] = 500
        base = f"https://localhost:{hooks.port}"
        await ended(service, f"{base}/token-9f2c", f"{base}/token-7ab1?key=s3cr3t")
        async with delivering(service):
            await over(2)
    finally:
        end()
    assert "was taken" in caplog.text
    assert "given up" in caplog.text
    for hidden in (secret, secret.removeprefix("whsec_"), "9f2c", "7ab1", "s3cr3t"):
        assert hidden not in caplog.text


async def test_a_look_up_that_hangs_costs_one_attempt(service, hooks, secret, once, monkeypatch):
    """In a thread of its own, which nobody waits for."""
    monkeypatch.setattr(sending, "ATTEMPT_SECONDS", 0.3)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: hooks.closing.wait(20) and [])
    assert await failed(service, "https://hooks.test/") == "Timeout"


def resolving(address: str) -> Any:
    """A resolver that knows one address."""
    return lambda host, port, **_: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]


def _answer(handler: Any, status: int) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", "0")
    handler.end_headers()
