"""asyncpoll.js ends its waits: when, with what, and what the user is told."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.browser.scripts import LIFETIME_MS, TICKS, Scripts, times


class TestTheLifetime:
    """Waits end."""

    def test_it_is_a_hard_limit_that_says_how_far_it_came(self, scripts: Scripts) -> None:
        """The id, the last answer, the attempts, and a sentence for an end user; the last hold is shorter."""
        ended = scripts.run(
            "return m.ending(m.play([() => m.poll([m.task('a', 3)]), m.rolledOver]).wait('a'))",
            LIFETIME_MS,
        )
        error = ended["error"]
        assert (error["name"], error["taskId"]) == ("PollLifetimeExceeded", "a")
        assert error["lastAnswer"]["version"] == 3
        assert error["attempts"] == len(scripts.asked)
        assert error["sentence"].startswith("The work goes on in the background")
        assert ended["at"] == LIFETIME_MS
        assert {request["hold"] for request in scripts.asked} > {25}
        assert all(
            request["at"] + 1_000 * request["hold"] < LIFETIME_MS for request in scripts.asked
        )

    def test_a_server_that_says_nothing_does_not_extend_it(self, scripts: Scripts) -> None:
        """Nor does one that asks for an hour's patience."""
        for silent in ("after: 10_000_000", "status: 503, headers: { 'Retry-After': '3600' }"):
            script = f"return m.ending(m.play([() => ({{ {silent} }})]).wait('a', {{ lifetimeMs: 30_000 }}))"
            assert scripts.run(script, 30_000)["at"] == 30_000

    @pytest.mark.parametrize(
        "status, notified, sentence",
        [(200, True, "will be in your message centre"), (403, False, "come back for its result")],
    )
    def test_the_message_centre_is_promised_only_where_it_was_accepted(
        self, scripts: Scripts, status: int, notified: bool, sentence: str
    ) -> None:
        """Asked for when the time is up, in one more request that may be repeated."""
        script = f"""
            const asked = (request) => (request.method === "POST" ? {{ status: {status}, body: {{}} }} : m.rolledOver(request));
            return m.ending(m.play([asked], {{ notify: {{ inbox: true }} }}).wait("a"));
        """
        error = scripts.run(script, LIFETIME_MS + 1_000)["error"]
        assert (error["name"], error["notified"]) == ("PollLifetimeExceeded", notified)
        assert sentence in error["sentence"]
        last = scripts.asked[-1]
        assert (last["path"], last["body"]) == ("/api/v1/tasks/a/notify", '{"inbox":true}')

    @pytest.mark.parametrize(
        "asked, notified",
        [
            ("submit('report', {}, { notify: { inbox: true } })", True),
            ("notify('a', { inbox: true })", True),
            ("notify('a', { webhook: 'https://hooks.example.com' })", False),
            ("submit('report')", False),
        ],
    )
    def test_who_asked_before_is_promised_it_as_well(
        self, scripts: Scripts, asked: str, notified: bool
    ) -> None:
        """With the task or on its way; a webhook is for programs, and no message centre."""
        script = f"""
            const answer = (request) => (request.method === "POST" ? {{ status: 202, body: m.task("a", 1) }} : m.rolledOver(request));
            const poll = m.play([answer]);
            await poll.{asked};
            return m.ending(poll.wait("A", {{ lifetimeMs: 9_000 }}));
        """
        error = scripts.run(script, 10_000)["error"]
        assert error["notified"] is notified
        assert ("message centre" in error["sentence"]) is notified
        assert [request["method"] for request in scripts.asked].count("POST") == 1

    def test_an_end_that_came_in_time_is_told_also_when_it_is_taken_late(
        self, scripts: Scripts
    ) -> None:
        """The page was busy with the answer before."""
        script = """
            const answers = [() => m.poll([m.task("a", 1)]), () => m.poll([m.done("a", 2)])];
            const watching = m.play(answers).watch("a");
            await watching.next();
            await new Promise((go) => setTimeout(go, 700_000));
            return watching.next();
        """
        assert scripts.run(script, 701_000)["value"]["result"] == 42

    def test_each_wait_has_its_own(self, scripts: Scripts) -> None:
        """On the request that they share."""
        ends = scripts.run(
            """
            const poll = m.play([m.rolledOver]);
            return Promise.all([5_000, 90_000].map((lifetimeMs) => m.ending(poll.wait("a", { lifetimeMs }))));
            """,
            100_000,
        )
        assert [end["at"] for end in ends] == [5_000, 90_000]

    def test_a_server_that_stays_away_ends_it_when_the_budget_is_spent(
        self, scripts: Scripts
    ) -> None:
        """With what went wrong, and without a storm, also if the page tries again at once."""
        ended = scripts.run(
            """
            const poll = m.play([m.cut()], { budgets: { errors: 3 } });
            const first = await m.ending(poll.wait("a"));
            await m.ending(poll.wait("a"));
            return first;
            """,
            120_000,
        )
        assert ended["error"]["name"] == "PollGaveUp"
        assert "too many errors in a row" in ended["error"]["message"]
        assert "can't be reached" in ended["error"]["sentence"]
        gaps = [later - earlier for earlier, later in pairwise(times(scripts))]
        assert len(gaps) == 7
        assert gaps == pytest.approx([750, 1_500, 3_000, 6_000, 750, 1_500, 3_000], abs=TICKS)
