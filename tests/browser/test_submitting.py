"""asyncpoll.js submits: once, however often it has to be sent."""

from __future__ import annotations

import pytest

from tests.browser.scripts import TICKS, Scripts, times


class TestSubmitting:
    """The only thing that is not a GET."""

    def test_it_is_tried_again_with_the_same_key(self, scripts: Scripts) -> None:
        """So that it is one task; 503 and a lost answer are no reason to give up."""
        submitted = scripts.run(
            """
            const busy = () => ({ status: 503, headers: { "Retry-After": "2" } });
            const poll = m.play([m.cut(), busy, () => ({ status: 202, body: m.task("a", 1) })]);
            return poll.submit("report", { year: 2026 }, { priority: -3 });
            """,
            10_000,
        )
        assert submitted["task_id"] == "a"
        assert {request["method"] for request in scripts.asked} == {"POST"}
        assert len({request["headers"]["Idempotency-Key"] for request in scripts.asked}) == 1
        assert {request["body"] for request in scripts.asked} == {
            '{"task":"report","kwargs":{"year":2026},"priority":-3}'
        }
        assert times(scripts)[2] - times(scripts)[1] == pytest.approx(2_250, abs=TICKS)

    def test_each_submission_has_a_key_of_its_own(self, scripts: Scripts) -> None:
        """Of 128 random bits."""
        scripts.run(
            "const poll = m.play([() => ({ status: 202, body: m.task('a', 1) })]);"
            "return Promise.all([poll.submit('report'), poll.submit('report')])",
            1_000,
        )
        keys = {request["headers"]["Idempotency-Key"] for request in scripts.asked}
        assert {len(key) for key in keys} == {32}
        assert len(keys) == 2

    def test_what_is_wrong_with_it_is_not_tried_again(self, scripts: Scripts) -> None:
        """422 stays 422."""
        script = "return m.ending(m.play([() => ({ status: 422, body: {} })]).submit('report'))"
        assert scripts.run(script, 60_000)["error"]["status"] == 422
        assert len(scripts.asked) == 1

    def test_a_token_goes_along_and_cookies_do_not(self, scripts: Scripts) -> None:
        """The token where it belongs, never in the address."""
        scripts.run(
            "return m.play([() => m.poll([m.done('a', 1)])], { token: 'ap_x' }).wait('a')", 1_000
        )
        [request] = scripts.asked
        assert request["headers"] == {"Authorization": "Bearer ap_x"}
        assert "ap_x" not in str(request["query"])
        assert request["credentials"] == "omit"
