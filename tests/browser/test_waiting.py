"""asyncpoll.js waits in a page: which requests does it send when, and what does the page get? By a clock of the test's."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.browser.scripts import Scripts

_LIFETIME_MS = 600_000
_TICKS = 3  # each timer takes one, also those for no time at all


def times(scripts: Scripts) -> list[int]:
    """When each request was sent, in milliseconds."""
    return [request["at"] for request in scripts.asked]


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
        scripts.go_on(_LIFETIME_MS)
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


class TestTheLifetime:
    """Waits end."""

    def test_it_is_a_hard_limit_that_says_how_far_it_came(self, scripts: Scripts) -> None:
        """The id, the last answer, the attempts, and a sentence for an end user; the last hold is shorter."""
        ended = scripts.run(
            "return m.ending(m.play([() => m.poll([m.task('a', 3)]), m.rolledOver]).wait('a'))",
            _LIFETIME_MS,
        )
        error = ended["error"]
        assert (error["name"], error["taskId"]) == ("PollLifetimeExceeded", "a")
        assert error["lastAnswer"]["version"] == 3
        assert error["attempts"] == len(scripts.asked)
        assert error["sentence"].startswith("The work goes on in the background")
        assert ended["at"] == _LIFETIME_MS
        assert {request["hold"] for request in scripts.asked} > {25}
        assert all(
            request["at"] + 1_000 * request["hold"] < _LIFETIME_MS for request in scripts.asked
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
        error = scripts.run(script, _LIFETIME_MS + 1_000)["error"]
        assert (error["name"], error["notified"]) == ("PollLifetimeExceeded", notified)
        assert sentence in error["sentence"]
        last = scripts.asked[-1]
        assert (last["path"], last["body"]) == ("/api/v1/tasks/a/notify", '{"inbox":true}')

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
        assert gaps == pytest.approx([750, 1_500, 3_000, 6_000, 750, 1_500, 3_000], abs=_TICKS)


class TestTrouble:
    """What is no answer."""

    @pytest.mark.parametrize(
        "trouble",
        [
            "cut: true",
            "status: 502, body: '<html>Bad Gateway'",
            "status: 500",
            "body: '<html>Welcome'",
            "body: '{\"tasks\": [{'",
            "body: { hello: 'world' }",
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
        assert second - first == pytest.approx(750, abs=_TICKS)

    def test_a_refusal_that_would_stay_one_is_told_at_once(self, scripts: Scripts) -> None:
        """With the problem as the server put it."""
        problem = "{ type: '/problems/unauthenticated', detail: 'The token has expired.' }"
        script = f"return m.ending(m.play([() => ({{ status: 401, body: {problem} }})]).wait('a'))"
        error = scripts.run(script, 5_000)["error"]
        assert (error["name"], error["status"]) == ("RequestRefused", 401)
        assert error["message"] == "Refused with 401: The token has expired."
        assert error["problem"]["type"] == "/problems/unauthenticated"

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
        assert second - first == pytest.approx(35_750, abs=_TICKS)

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
        assert times(scripts)[2] - times(scripts)[1] == pytest.approx(2_500, abs=_TICKS)

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


class TestAPageThatIsNotSeen:
    """Hidden, or offline."""

    def test_it_asks_less_often_while_hidden_and_at_once_when_seen_again(
        self, scripts: Scripts
    ) -> None:
        """Without holding, as the tabs of a browser share few connections; then it holds again."""
        scripts.begin(
            "m.turn('hidden'); return m.play([() => m.poll([m.task('a', m.asked.length)])]).wait('a')"
        )
        scripts.go_on(31_000)
        assert len(scripts.asked) == 3
        scripts.do("m.turn('visible')")
        scripts.go_on(10)
        assert [request["hold"] for request in scripts.asked] == [0, 0, 0, 25]

    def test_what_is_held_when_it_is_hidden_stays(self, scripts: Scripts) -> None:
        """It is paid for already."""
        scripts.begin(
            "return m.play([() => m.poll([m.done('a', 1)], { after: 20_000 })]).wait('a')"
        )
        scripts.go_on(5_000)
        scripts.do("m.turn('hidden')")
        scripts.go_on(16_000)
        assert scripts.came()["result"] == 42
        assert len(scripts.asked) == 1

    def test_a_page_may_be_treated_as_if_it_were_always_seen(self, scripts: Scripts) -> None:
        """One that shows something elsewhere, say."""
        scripts.begin("m.turn('hidden'); return m.play([m.rolledOver], { hiddenMs: 0 }).wait('a')")
        scripts.go_on(60_000)
        assert [request["hold"] for request in scripts.asked] == [25, 25, 25]

    def test_seeing_it_again_does_not_end_a_backoff(self, scripts: Scripts) -> None:
        """A server that asked for a minute gets it."""
        busy = "{ status: 503, headers: { 'Retry-After': '60' } }"
        scripts.begin(f"m.turn('hidden'); return m.play([() => ({busy})]).wait('a')")
        scripts.go_on(5_000)
        scripts.do("m.turn('visible')")
        scripts.go_on(50_000)
        assert len(scripts.asked) == 1

    def test_a_wait_that_begins_on_a_hidden_page_is_asked_for_at_once(
        self, scripts: Scripts
    ) -> None:
        """And takes the others along."""
        scripts.begin(
            "m.turn('hidden'); window.poll = m.play([() => m.poll([m.task('a', 1)])]); poll.wait('a')"
        )
        scripts.go_on(5_000)
        scripts.do("void poll.wait('b')")
        scripts.go_on(10)
        assert [len(request["tasks"]) for request in scripts.asked] == [1, 2]

    def test_while_hidden_the_lifetime_goes_on(self, scripts: Scripts) -> None:
        """Also where nothing is asked at all."""
        script = "m.turn('hidden'); return m.ending(m.play([() => m.poll([m.task('a', 1)])], { hiddenMs: Infinity }).wait('a'))"
        assert scripts.run(script, _LIFETIME_MS)["error"]["name"] == "PollLifetimeExceeded"
        assert len(scripts.asked) == 1

    def test_offline_it_rests_and_goes_on_when_the_network_is_back(self, scripts: Scripts) -> None:
        """Within a second, not all devices at once; nothing of the budget was spent."""
        scripts.begin(
            """
            m.connect(false);
            const answer = (request) => (navigator.onLine ? m.poll([m.done("a", 1)]) : m.cut()(request));
            return m.play([answer], { budgets: { errors: 0 } }).wait("a");
            """
        )
        scripts.go_on(299_000)
        looks = len(scripts.asked)
        assert looks == 299 // 15 + 1
        scripts.do("m.connect(true)")
        scripts.go_on(400)
        assert len(scripts.asked) == looks
        scripts.go_on(600)
        assert scripts.came()["result"] == 42


@pytest.mark.parametrize(
    "options, sentence",
    [
        ("{ lifetime: 5 }", "lifetime is none of token, ticket, credentials, lifetimeMs"),
        ("{ baseDelayMs: -1 }", "baseDelayMs is -1; it must be a number from 0 up"),
        ("{ budgets: { errors: 'many' } }", "errors is many; it must be a number from 0 up"),
        ("{ lifetimeMs: Infinity }", "lifetimeMs is Infinity; it can be 2147483647 at most"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    scripts: Scripts, options: str, sentence: str
) -> None:
    """When the client is made, with its name and the rule."""
    script = f"try {{ new m.Asyncpoll('/api/v1/', {options}); }} catch (error) {{ return error.message; }}"
    assert scripts.compute(script).startswith(sentence)
