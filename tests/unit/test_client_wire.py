"""Both drivers against a scripted server: what gateways, dying servers and caches do to a wait."""

from __future__ import annotations

import json
import logging
import ssl
import time

import httpx
import pytest

from asyncpoll.client import (
    PollLifetimeExceeded,
    PollPolicy,
    Redirected,
    Refused,
    ResponseTooLarge,
    Unreachable,
    set_testing,
)
from asyncpoll.client.hosts import forget_hosts, host_of
from asyncpoll.client.testing import (
    ScriptedServer,
    answer,
    busy,
    cut,
    failure,
    gzipped,
    half,
    page,
    problem,
    redirect,
    reset,
    silence,
    still_running,
    success,
    trickle,
)
from tests.sdk import KINDS, Caller
from tests.support import free_port

QUICK = PollPolicy(base_delay=0.01, max_delay=0.05, lifetime_seconds=30)
TOKEN = "ap_0123_secret"
FAULTS = {
    "cut": cut(0.25),
    "RST": reset(0.25),
    "half an answer": half(success()),
    "200 with HTML": page(200),
    "500": problem(500),
    "502 page": page(502),
    "503 page": page(503),
    "504 page": page(504),
    "half of a gzip": half(gzipped(success())),
}


@pytest.fixture(autouse=True)
def _new_hosts():
    """Ports come again."""
    forget_hosts()


@pytest.fixture(params=KINDS)
def kind(request):
    """Either driver."""
    return request.param


async def wait(kind, server, policy=QUICK, **options):
    """Wait for a task of the server. Gives the answer and the attempts."""
    attempts = []
    async with Caller(kind, server.url, policy=policy, hooks=[attempts.append]) as client:
        return await client.wait("t1", **options), attempts


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_a_wait_survives_each_fault_and_does_not_hold_the_next_request(kind, fault):
    """With a backoff, and a word to the hooks."""
    with ScriptedServer([answer(version=1), fault, answer(version=2), success(42)]) as server:
        over, attempts = await wait(kind, server)
    assert over.result == 42
    assert [received.hold_seconds for received in server.requests] == [25, 25, 0, 25]
    assert [bool(one.error) for one in attempts] == [False, True, False, False]
    assert attempts[2].delay_before > 0


async def test_a_gateway_that_cuts_at_an_age_is_learnt_and_the_hold_stays_below_it(kind):
    """Also for the next client. At 1.2 s here, since twice 20 s of real time would show no more; test_client_conversation
    has the 20 s."""

    def gateway(received):
        return cut(1.2) if received.hold_seconds > 1.2 else success()

    with ScriptedServer(gateway) as server:
        host = host_of(server.url)
        script = iter([answer(version=1), cut(1.2), answer(version=2), cut(1.2)])
        server.play(lambda received: next(script, None) or gateway(received))
        over, _ = await wait(kind, server)
        assert over.succeeded
        assert 0.8 < host.hold_ceiling < 1.0
        server.requests.clear()
        await wait(kind, server)
        assert server.requests[0].hold_seconds == pytest.approx(host.hold_ceiling, abs=0.001)


@pytest.mark.parametrize("how", ["seconds", "date", "date of a clock that is an hour ahead"])
async def test_a_retry_after_is_obeyed_whatever_the_clocks_say(kind, how):
    """The server's date is compared with the server's date."""
    later = busy(7, as_date=how != "seconds", clock_off_by=3600 if "ahead" in how else 0)
    with ScriptedServer([later, success()]) as server, set_testing():
        _, attempts = await wait(kind, server)
    assert 7 <= attempts[1].delay_before < 9


async def test_a_jump_of_the_wall_clock_changes_no_lifetime(kind, monkeypatch):
    """Lifetimes are measured on the monotonic clock."""
    real, calls = time.time, []
    monkeypatch.setattr(time, "time", lambda: real() + 86_400 * len(calls.append(1) or calls))
    with ScriptedServer([answer(version=1), page(503), answer(version=2), success()]) as server:
        over, _ = await wait(kind, server)
    assert over.succeeded


async def test_a_cache_that_answers_at_once_causes_no_hot_loop(kind):
    """After two more such answers the requests are a backoff apart."""
    policy = PollPolicy(base_delay=0.2, lifetime_seconds=1.0)
    with ScriptedServer([answer(version=4)]) as server, pytest.raises(PollLifetimeExceeded):
        await wait(kind, server, policy)
    assert len(server.requests) <= 6


async def test_an_older_version_out_of_a_cache_is_not_told(kind):
    """Versions only go up, unless the server says reset."""
    seen = []
    script = [answer(version=5), answer(version=3), answer(version=6), success(version=7)]
    with ScriptedServer(script) as server:
        await wait(kind, server, on_change=seen.append)
    assert [one.version for one in seen] == [5, 6, 7]
    assert [received.query["client_known_version"] for received in server.requests] == list("0556")


async def test_a_reset_is_told_and_the_cursor_dropped(kind):
    """The database was restored."""
    seen = []
    with ScriptedServer([answer(version=2, reset=True), success(version=3)]) as server:
        await wait(kind, server, cursor="t1:9", on_change=seen.append)
    assert [one.version for one in seen] == [2, 3]
    assert [received.query["client_known_version"] for received in server.requests] == list("92")


async def test_ten_redirects_are_one_clear_error_and_the_token_goes_nowhere_else(kind):
    """Redirects are not followed."""
    with ScriptedServer([success()]) as elsewhere:
        with ScriptedServer([redirect(elsewhere.url + "/?state=s")] * 10) as server:
            async with Caller(kind, server.url, token=TOKEN) as client:
                with pytest.raises(Redirected, match="give the final address as base URL"):
                    await client.wait("t1")
    assert len(server.requests) == 1 and not elsewhere.requests


async def test_a_slow_trickle_is_read_and_one_that_never_ends_is_cut_with_the_lifetime(kind):
    """Also where it is the headers that trickle."""
    with ScriptedServer([trickle(success(1), pause=0.0005)]) as server:
        assert (await wait(kind, server))[0].succeeded
    with ScriptedServer([trickle(success(), pause=0.3)]) as server:  # 100 s for all of it
        started = time.monotonic()
        with pytest.raises(PollLifetimeExceeded):
            await wait(kind, server, lifetime=0.6)
    assert time.monotonic() - started < 30
    assert len(server.requests) == 1


async def test_silence_ends_with_the_lifetime(kind):
    """A hard limit, whatever the server promised."""
    with ScriptedServer([answer(version=1), silence()]) as server:
        with pytest.raises(PollLifetimeExceeded, match=r"after 0\.7 s and 2 requests") as raised:
            await wait(kind, server, lifetime=0.7)
    assert raised.value.answer.version == 1
    assert raised.value.attempts[-1].status is None


async def test_gzip_is_understood_and_a_bomb_is_not_unpacked(kind):
    """The limit is of what was unpacked."""
    with ScriptedServer([gzipped(success("x" * 1000))]) as server:
        assert (await wait(kind, server))[0].result == "x" * 1000
    bomb = gzipped(success("x" * 10_000_000))
    with ScriptedServer([bomb]) as server, pytest.raises(ResponseTooLarge, match="max_body_bytes"):
        await wait(kind, server, PollPolicy(max_body_bytes=100_000))
    assert len(server.requests) == 1


async def test_a_kept_connection_that_dies_is_tried_once_more_on_a_new_one(kind):
    """Without a short hold, since nothing is wrong."""
    with ScriptedServer([answer(version=1), cut(), success()]) as server, set_testing():
        over, attempts = await wait(kind, server)
    assert over.succeeded
    assert [received.connection for received in server.requests] == [1, 1, 2]
    assert server.requests[-1].hold_seconds == 25
    assert attempts[-1].delay_before <= 1 + 1


async def test_a_connection_that_dies_on_its_first_request_backs_off(kind):
    """That is no idle connection that was closed."""
    with ScriptedServer([cut(), success()]) as server:
        _, attempts = await wait(kind, server)
    assert server.requests[-1].hold_seconds == 0
    assert "Disconnected" in attempts[0].error or "disconnected" in attempts[0].error


async def test_nobody_listening_is_an_error_of_which_there_may_be_so_many(kind):
    """With the reason, and all attempts."""
    policy = PollPolicy(base_delay=0.01, max_delay=0.01, error_budget=2)
    async with Caller(kind, f"http://127.0.0.1:{free_port()}", policy=policy) as client:
        with pytest.raises(
            Unreachable, match="3 times in a row; the last time: ConnectError"
        ) as raised:
            await client.wait("t1")
    assert [one.status for one in raised.value.attempts] == [None] * 3


async def test_a_retried_submission_has_the_same_key_and_the_same_body(kind):
    """One task, however often it is sent."""
    with ScriptedServer([cut(), half(answer()), page(503), answer(version=1)]) as server:
        async with Caller(kind, server.url, policy=QUICK) as client:
            await client.submit("work", kwargs={"a": 1}, priority=3)
            await client.submit("other")
    *tries, other = server.requests
    (key,) = {received.headers["idempotency-key"] for received in tries}
    assert len(tries) == 4 and key and key != other.headers["idempotency-key"]
    bodies = {received.body for received in tries}
    assert [json.loads(body) for body in bodies] == [
        {"task": "work", "kwargs": {"a": 1}, "priority": 3}
    ]
    async with Caller(kind, "http://127.0.0.1:1") as client:
        with pytest.raises(ValueError, match="can't be sent as JSON"):
            await client.submit("work", args=[object()])


async def test_every_request_tells_caches_to_keep_out_and_carries_the_token(kind):
    """Whatever is asked; waiting only asks with GET."""
    script = [answer(version=1), still_running(), cut(), success()]
    with ScriptedServer(script) as server, set_testing():
        async with Caller(kind, server.url, token=TOKEN, policy=QUICK) as client:
            await client.wait("t1")
            await client.get("t1")
            await client.cancel("t1")
    for received in server.requests:
        assert received.headers["cache-control"] == received.headers["pragma"] == "no-cache"
        assert received.headers["authorization"] == f"Bearer {TOKEN}"
    assert [received.method for received in server.requests] == ["GET"] * 5 + ["POST"]


async def test_secrets_are_in_no_log_no_error_no_hook_and_no_repr(kind, caplog):
    """Neither the token nor the ticket, which is part of the URL."""
    caplog.set_level(logging.DEBUG)
    attempts = []
    script = [answer(version=1), cut(), problem(403, detail="no")]
    with ScriptedServer(script) as server, set_testing():
        secrets = {"token": TOKEN, "ticket": "t1:secret"}
        async with Caller(
            kind, server.url, policy=QUICK, hooks=[attempts.append], **secrets
        ) as client:
            with pytest.raises(Refused) as raised:
                await client.wait("t1")
            said = f"{client.client!r} {raised.value!r} {raised.value} {attempts} {caplog.text}"
    assert server.requests[0].query["ticket"] == "t1:secret"
    assert "secret" not in said and "403" in said


async def test_a_client_of_ones_own_is_used_and_left_open(kind):
    """With its proxies and certificates; redirects are not followed even if it would."""
    make = httpx.Client if kind == "sync" else httpx.AsyncClient
    own = make(headers={"X-Mine": "1"}, follow_redirects=True)
    with ScriptedServer([success(), redirect()]) as server:
        async with Caller(kind, server.url, http=own) as client:
            await client.wait("t1")
            with pytest.raises(Redirected):
                await client.wait("t1")
    assert server.requests[0].headers["x-mine"] == "1" and len(server.requests) == 2
    assert not own.is_closed


async def test_while_testing_pauses_are_instant_and_lifetimes_end_all_the_same(kind):
    """A minute of backoff takes no time."""
    with set_testing(), ScriptedServer([page(503)]) as server:
        with pytest.raises(PollLifetimeExceeded) as raised:
            await wait(kind, server, PollPolicy(lifetime_seconds=600, busy_budget=1000))
    assert sum(one.delay_before for one in raised.value.attempts) > 500
    assert raised.value.attempt_count == len(server.requests)


async def test_while_testing_no_wait_pays_for_the_time_that_another_skipped(kind):
    """A wait that skipped ten minutes and gave up is not ten minutes ahead of the next."""
    patient = PollPolicy(lifetime_seconds=600, busy_budget=1000)
    with set_testing(), ScriptedServer([page(503)]) as server:
        with pytest.raises(PollLifetimeExceeded):
            await wait(kind, server, patient)
        server.play([page(503), success()])
        over, attempts = await wait(kind, server, patient)
    assert over.succeeded and attempts[-1].delay_before < 10


async def test_a_process_that_was_forked_sends_on_connections_of_its_own(kind, monkeypatch):
    """Or parent and child would each read what the other asked for."""
    with ScriptedServer([success()]) as server:
        async with Caller(kind, server.url) as client:
            await client.get("t1")
            await client.get("t1")
            with monkeypatch.context() as forked:
                forked.setattr("asyncpoll.client.drivers.os.getpid", lambda: -1)
                await client.get("t1")
                await client.aclose() if kind == "async" else await client.close()
            await client.get("t1")
    assert [received.connection for received in server.requests] == [1, 1, 2, 1]


async def test_a_certificate_that_is_refused_is_not_tried_again(kind):
    """It proves that this is not whom we want to talk to."""

    def refuse(request):
        raise httpx.ConnectError("no") from ssl.SSLCertVerificationError("self-signed certificate")

    make = httpx.Client if kind == "sync" else httpx.AsyncClient
    own = make(transport=httpx.MockTransport(refuse))
    async with Caller(kind, "https://example.org", http=own) as client:
        with pytest.raises(Unreachable, match="the server's certificate is refused") as raised:
            await client.wait("t1")
    assert len(raised.value.attempts) == 1


async def test_a_hook_that_fails_is_logged_and_the_wait_goes_on(kind, caplog):
    """Hooks watch."""
    with ScriptedServer([success()]) as server:
        async with Caller(kind, server.url, hooks=[lambda attempt: 1 / 0]) as client:
            assert (await client.wait("t1")).succeeded
    assert "A hook failed" in caplog.text


async def test_a_stalled_task_raises_or_is_waited_for_or_has_a_fallback(kind):
    """The caller chooses."""
    script = [answer(version=1, stalled=True), failure()]
    with ScriptedServer(script) as server, pytest.raises(Exception, match="stopped its heartbeat"):
        await wait(kind, server)
    with ScriptedServer(script) as server:
        assert (await wait(kind, server, on_stale="retry"))[0].is_terminal
    with ScriptedServer(script) as server:
        over, _ = await wait(kind, server, on_stale=lambda error: error.answer.version)
        assert over == 1
