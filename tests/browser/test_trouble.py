"""asyncpoll.js and all that is no answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.scripts import TICKS, Scripts, times


class TestTrouble:
    """What is no answer."""

    @pytest.mark.parametrize(
        "trouble",
        [
            "cut: true",
            "status: 502, body: '<html>Bad Gateway'",
            "status: 500",
            "body: '<html>Welcome'",
            "torn: true",
            "body: '{\"tasks\": [{'",
            "body: { hello: 'world' }",
            "body: { tasks: [{ task_id: 'a', version: null }], hold_granted_ms: 1, client_read_timeout_ms: 1 }",
            "body: { tasks: [null], hold_granted_ms: 1, client_read_timeout_ms: 1 }",
        ],
    )
    def test_it_backs_off_and_first_looks_without_holding(
        self, scripts: Scripts, trouble: str
    ) -> None:
        """Network errors, gateways' pages, half an answer, and JSON that is not ours."""
        scripts.run(
            f"return m.play([() => ({{ {trouble} }}), m.rolledOver, () => m.poll([m.done('a', 1)])]).wait('a')",
            60_000,
        )
        assert [request["hold"] for request in scripts.asked] == [25, 0, 25]
        first, second, _ = times(scripts)
        assert second - first == pytest.approx(750, abs=TICKS)

    def test_half_an_answer_twice_at_the_same_age_is_no_gateways_doing(
        self, scripts: Scripts
    ) -> None:
        """It had begun to answer: the hold stays what it was."""
        scripts.run(
            """
            const torn = () => ({ after: 10_000, torn: true });
            return m.play([torn, m.rolledOver, torn, m.rolledOver, () => m.poll([m.done("a", 1)])]).wait("a");
            """,
            60_000,
        )
        assert [request["hold"] for request in scripts.asked] == [25, 0, 25, 0, 25]

    def test_a_refusal_that_would_stay_one_is_told_at_once(self, scripts: Scripts) -> None:
        """With the problem as the server put it."""
        problem = "{ type: '/problems/unauthenticated', detail: 'The token has expired.' }"
        script = f"return m.ending(m.play([() => ({{ status: 401, body: {problem} }})]).wait('a'))"
        error = scripts.run(script, 5_000)["error"]
        assert (error["name"], error["status"]) == ("RequestRefused", 401)
        assert error["message"] == "Refused with 401: The token has expired."
        assert error["problem"]["type"] == "/problems/unauthenticated"

    def test_messages_stay_short_whatever_a_server_says(self, scripts: Scripts) -> None:
        """The whole of it is in `problem`."""
        script = "return m.ending(m.play([() => ({ status: 403, body: { detail: 'x'.repeat(9_999) } })]).wait('a'))"
        error = scripts.run(script, 5_000)["error"]
        assert len(error["message"]) < 600
        assert len(error["problem"]["detail"]) == 9_999

    @pytest.mark.parametrize(
        "trouble, last",
        [
            ("cut: true", "Failed to fetch"),
            ("status: 502, body: '<html>'", "502, it did not say why"),
            ("status: 500, body: { detail: 'no room' }", "500, no room"),
            ("body: '<html>'", "200, it did not say why"),
        ],
    )
    def test_who_gives_up_learns_what_was_wrong_last(
        self, scripts: Scripts, trouble: str, last: str
    ) -> None:
        """In the message."""
        script = f"return m.ending(m.play([() => ({{ {trouble} }})], {{ budgets: {{ errors: 1 }} }}).wait('a'))"
        error = scripts.run(script, 20_000)["error"]
        assert error["message"] == f"Gave up after too many errors in a row; the last one: {last}"

    def test_a_gateway_without_its_server_for_a_moment_is_no_refusal(
        self, scripts: Scripts
    ) -> None:
        """Its 404 is a page, and ours has answered before."""
        script = """
            const answers = [() => m.poll([m.task("a", 1)]), () => ({ status: 404, body: "<html>" }), () => m.poll([m.done("a", 2)])];
            return m.play(answers).wait("a");
        """
        assert scripts.run(script, 5_000)["result"] == 42

    def test_a_read_that_outlives_the_servers_word_is_given_up(self, scripts: Scripts) -> None:
        """And tried again: that server is not coming back."""
        script = "return m.play([() => ({ after: 9_999_999 }), () => m.poll([m.done('a', 1)])]).wait('a')"
        scripts.run(script, 60_000)
        first, second = times(scripts)
        assert second - first == pytest.approx(35_750, abs=TICKS)

    def test_a_cache_in_between_is_not_asked_as_fast_as_it_answers(self, scripts: Scripts) -> None:
        """Two are let pass; then it slows down, and asks for what no cache has."""
        scripts.begin("return m.play([() => m.poll([m.task('a', 1)])]).wait('a', { after: 1 })")
        scripts.go_on(20_000)
        assert len(scripts.asked) <= 7
        assert len({request["query"].get("_") for request in scripts.asked}) == len(scripts.asked)

    @pytest.mark.parametrize(
        "choice, expected",
        [
            ("'raise'", ["StaleResponseError", 2]),
            ("'wait'", 42),
            ("() => { throw new Error('fallback') }", ["Error", None]),
        ],
    )
    def test_when_a_worker_has_stopped_the_caller_chooses(
        self, scripts: Scripts, choice: str, expected: Any
    ) -> None:
        """To be told, to wait for another one, or something of its own."""
        ended = scripts.run(
            f"""
            const answers = [() => m.poll([m.task("a", 2, {{ stalled: true }})]), () => m.poll([m.done("a", 3)])];
            return m.ending(m.play(answers, {{ onStalled: {choice} }}).wait("a"));
            """,
            5_000,
        )
        if "error" in ended:
            came = [ended["error"]["name"], (ended["error"].get("lastAnswer") or {}).get("version")]
        else:
            came = ended["value"]["result"]
        assert came == expected
