"""asyncpoll.js waits for a task in a page: which requests does it send, and what does the page get? By a clock of the test's."""

from __future__ import annotations

import pytest

from tests.browser.scripts import LIFETIME_MS, Scripts, times


class TestWaiting:
    """One task."""

    def test_the_cursor_goes_along_until_the_end(self, scripts: Scripts) -> None:
        """Each answer's version is asked with next; only GET is sent; the end is what the wait gives."""
        answer = scripts.run(
            """
            const news = ({ tasks: [each] }) => m.poll([m.task("a", Number(each.slice(2)) + 2)], { after: 3_000 });
            return m.play([news, m.rolledOver, news, () => m.poll([m.done("a", 9)])]).wait("a", { after: 3 });
            """,
            60_000,
        )
        assert (answer["status"], answer["result"]) == ("SUCCESS", 42)
        assert [request["tasks"] for request in scripts.asked] == [
            [f"a:{version}"] for version in (3, 5, 5, 7)
        ]
        assert {request["method"] for request in scripts.asked} == {"GET"}

    def test_a_roll_over_is_followed_after_the_servers_own_hint(self, scripts: Scripts) -> None:
        """And nothing else."""
        scripts.run(
            "return m.play([m.rolledOver, m.rolledOver, () => m.poll([m.done('a', 1)])]).wait('a')",
            60_000,
        )
        first, second, third = times(scripts)
        assert (second - first, third - second) == (23_850, 23_850)

    def test_a_watch_tells_what_is_new_and_nothing_twice(self, scripts: Scripts) -> None:
        """Neither versions that are older, from a cache, nor the same one again."""
        versions = scripts.run(
            """
            const answers = [2, 2, 1, 3].map((version) => () => m.poll([m.task("a", version)], { after: 5_000 }));
            const told = [];
            for await (const { version } of m.play([...answers, () => m.poll([m.done("a", 4)])]).watch("a")) told.push(version);
            return told;
            """,
            120_000,
        )
        assert versions == [2, 3, 4]

    def test_a_cursor_that_is_reset_goes_on_from_the_servers(self, scripts: Scripts) -> None:
        """The database was restored."""
        scripts.run(
            """
            const back = () => m.poll([m.task("a", 2, { reset: true })]);
            return m.play([back, () => m.poll([m.done("a", 3)])]).wait("a", { after: 9 });
            """,
            10_000,
        )
        assert [request["tasks"] for request in scripts.asked] == [["a:9"], ["a:2"]]

    def test_milestones_bring_what_happened_between_two_answers(self, scripts: Scripts) -> None:
        """All pages of it, up to the one with the end."""
        events = scripts.run(
            """
            const page = (events, next_after, goesOn) => () => ({ body: { ...m.task("a", 9), events, next_after, should_continue_polling: goesOn } });
            const answers = [() => m.poll([m.done("a", 5)]), page([1, 2], 2, true), page([3, 4, 5], 5, false)];
            const told = [];
            for await (const page of m.play(answers).watch("a", { milestones: true })) told.push(...page.events);
            return told;
            """,
            10_000,
        )
        assert events == [1, 2, 3, 4, 5]
        assert [request["query"].get("after") for request in scripts.asked] == [None, "0", "2"]

    def test_after_a_reset_milestones_begin_anew(self, scripts: Scripts) -> None:
        """As the server tells them then."""
        scripts.run(
            """
            const answers = [() => m.poll([m.task("a", 2, { reset: true })]), () => ({ body: { ...m.done("a", 2), events: [1, 2], next_after: 2 } })];
            return m.play(answers).wait("a", { after: 9, milestones: true });
            """,
            5_000,
        )
        assert [request["query"].get("after") for request in scripts.asked][1] == "0"

    def test_a_task_that_is_over_and_known_is_told_all_the_same(self, scripts: Scripts) -> None:
        """After a reload nothing else would come."""
        script = "return m.play([() => m.poll([m.done('a', 5)])]).wait('a', { after: 5, milestones: true })"
        assert scripts.run(script, 5_000)["result"] == 42
        assert len(scripts.asked) == 1

    @pytest.mark.parametrize("end", ["leave.abort(new Error('enough'))", "watching.return()"])
    def test_one_that_is_ended_lets_go_of_its_request(self, scripts: Scripts, end: str) -> None:
        """By its signal, or by leaving the loop: nothing is sent any more."""
        scripts.begin(
            """
            const leave = new AbortController();
            window.held = null;
            const watching = m.play([() => m.poll([m.task("a", 1)]), m.rolledOver]).watch("a", { signal: leave.signal });
            await watching.next();
            Object.assign(window, { leave, watching });
            const fetched = globalThis.fetch;
            globalThis.fetch = (url, init) => fetched(url, ((window.held = init.signal), init));
            if (END.startsWith("leave")) await watching.next();
            """.replace("END", f'"{end}"')
        )
        scripts.go_on(5_000)
        scripts.do(end)
        scripts.go_on(LIFETIME_MS)
        assert len(scripts.asked) == 2
        assert scripts.do("window.held.aborted") is True
        if end.startswith("leave"):
            assert scripts.do("m.ending(window.came)")["error"]["message"] == "enough"

    def test_what_was_not_yet_taken_when_it_was_ended_is_not_told(self, scripts: Scripts) -> None:
        """The page has gone on to something else."""
        scripts.begin(
            """
            const leave = new AbortController();
            const watching = m.play([() => m.poll([m.task("a", m.asked.length)])]).watch("a", { signal: leave.signal });
            await watching.next();
            await new Promise((go) => setTimeout(go, 5_000));
            leave.abort();
            return m.ending(watching.next());
            """
        )
        scripts.go_on(10_000)
        assert scripts.came()["error"]["name"] == "AbortError"

    def test_it_can_be_ended_before_it_begins(self, scripts: Scripts) -> None:
        """Nothing is sent."""
        script = (
            "return m.ending(m.play([m.rolledOver]).wait('a', { signal: AbortSignal.abort() }))"
        )
        assert scripts.run(script, 1_000)["error"]["name"] == "AbortError"
        assert scripts.asked == []
