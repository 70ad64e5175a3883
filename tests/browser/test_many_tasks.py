"""asyncpoll.js waits for many tasks in one page: with how few requests?"""

from __future__ import annotations

from tests.browser.scripts import Scripts


class TestManyTasks:
    """Waits of one page."""

    def test_those_that_begin_together_share_a_request(self, scripts: Scripts) -> None:
        """With a moment's lingering for others, and each gets its own answer."""
        results = scripts.run(
            """
            const ids = Array.from({ length: 100 }, (_, n) => `t${n}`);
            const all = () => m.poll(ids.map((id, n) => m.done(id, 2, n)));
            const poll = m.play([all]);
            return (await Promise.all(ids.map((id) => poll.wait(id)))).map(({ result }) => result);
            """,
            1_000,
        )
        assert results == list(range(100))
        [request] = scripts.asked
        assert len(request["tasks"]) == 100
        assert request["query"]["linger_ms"] == "100"

    def test_beyond_a_hundred_there_is_another_one(self, scripts: Scripts) -> None:
        """The protocol's limit."""
        scripts.begin(
            "const poll = m.play([m.rolledOver]); for (let n = 0; n < 150; n += 1) poll.wait(`t${n}`)"
        )
        scripts.go_on(1_000)
        assert [len(request["tasks"]) for request in scripts.asked] == [100, 50]

    def test_tickets_go_along_with_their_tasks(self, scripts: Scripts) -> None:
        """Forty in a request, and never together with what a token is for."""
        scripts.begin(
            """
            const poll = m.play([m.rolledOver]);
            poll.wait("t");
            for (let n = 0; n < 50; n += 1) poll.wait(`t${n}`, { ticket: `T${n}` });
            """
        )
        scripts.go_on(1_000)
        assert [(len(request["tasks"]), len(request["tickets"])) for request in scripts.asked] == [
            (1, 0),
            (40, 40),
            (10, 10),
        ]

    def test_one_that_joins_later_does_not_wait_for_the_hold_to_end(self, scripts: Scripts) -> None:
        """The request is sent again for both; nobody's cursor is lost."""
        scripts.begin(
            "window.poll = m.play([() => m.poll([m.task('a', 4)]), m.rolledOver]); poll.wait('a')"
        )
        scripts.go_on(5_000)
        scripts.do("void poll.wait('b')")
        scripts.go_on(100)
        assert [request["tasks"] for request in scripts.asked] == [["a:0"], ["a:4"], ["a:4", "b:0"]]
        scripts.go_on(50_000)
        scripts.do("void poll.wait('c')")
        scripts.go_on(25)
        assert scripts.asked[-1]["tasks"] == ["a:4", "b:0", "c:0"]

    def test_one_that_is_over_is_not_asked_for_again(self, scripts: Scripts) -> None:
        """Also where the page has not come to take its end."""
        scripts.begin(
            """
            const poll = m.play([() => m.poll([m.task("a", 1)]), () => m.poll([m.done("a", 2)]), m.rolledOver]);
            poll.watch("a").next();
            poll.wait("b");
            """
        )
        scripts.go_on(5_000)
        assert [len(request["tasks"]) for request in scripts.asked] == [2, 2, 1]

    def test_a_page_that_keeps_adding_waits_hears_of_the_first_ones(self, scripts: Scripts) -> None:
        """Answers that take half a second are not cut off for ever by newcomers."""
        scripts.begin(
            """
            const poll = m.play([() => m.poll([m.done("t0", 1)], { after: 500 })]);
            window.first = m.ending(poll.wait("t0"));
            for (let n = 1; ; n += 1) { await new Promise((go) => setTimeout(go, 50)); poll.wait(`t${n}`).catch(() => {}); }
            """
        )
        scripts.go_on(4_000)
        assert scripts.do("window.first")["value"]["result"] == 42

    def test_a_task_that_is_gone_ends_its_own_wait_only(self, scripts: Scripts) -> None:
        """Its problem is in the answer of all; a row that could not be read this time is none."""
        ends = scripts.run(
            """
            const problems = [{ task: "b", status: 410, detail: "deleted" }, { task: "c", status: 503, detail: "later" }];
            const poll = m.play([() => m.poll([], { problems }), () => m.poll([m.done("a", 1), m.done("c", 1)])]);
            return Promise.all(["a", "b", "c"].map((id) => m.ending(poll.wait(id))));
            """,
            5_000,
        )
        assert [end.get("error", {}).get("status", 200) for end in ends] == [200, 410, 200]
        assert scripts.asked[1]["tasks"] == ["a:0", "c:0"]
