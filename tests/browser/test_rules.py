"""The rules of asyncpoll.js that decide, without clock or network: told what came, what do they say?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.scripts import Scripts

_ANSWERED = "{ outcome: 'STILL_RUNNING', news: false, ageMs: 24_000, backoffMs: 100, grantedMs: 24_000, readTimeoutMs: 34_000 }"
_FAILED = "{ status: null, problem: null, ageMs: 10, holdMs: 25_000, retryAfterMs: null, now: 0, leftMs: 600_000 }"


def paced(scripts: Scripts, script: str, random: float = 0.0) -> Any:
    """What a script gives that has a `pace` whose chance is always the same, and its `gateway`."""
    return scripts.compute(
        "const { Pace, Gateway, Wait, DEFAULTS } = m; const gateway = new Gateway();"
        f"const pace = new Pace(gateway, DEFAULTS, () => {random});"
        f"const answered = {_ANSWERED}, failed = {_FAILED}, refused = {{ ...failed, status: 503 }};"
        f"const times = (n, give) => Array.from({{ length: n }}, give); {script}"
    )


class TestBackoff:
    """How long until the next try."""

    @pytest.mark.parametrize("random", [0.0, 0.5])
    def test_it_doubles_up_to_its_limit_with_jitter_on_top(
        self, scripts: Scripts, random: float
    ) -> None:
        """min(max_delay, base * 2^retry), and a random part as long again at most."""
        delays = paced(
            scripts,
            "return times(7, (_, n) => pace.failed({ ...failed, now: n * 60_000 }).sleepMs)",
            random,
        )
        plain = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]
        assert delays == [delay * (1 + random) for delay in plain]

    @pytest.mark.parametrize(
        "header, expected",
        [
            ("7", 7_000),
            ("1.5", 1_500),
            ("Thu, 01 Jan 1970 00:00:30 GMT", 30_000),
            ("Thu, 01 Jan 1969 00:00:00 GMT", 0),
            ("soon", None),
        ],
    )
    def test_retry_after_is_read_as_seconds_or_as_a_date(
        self, scripts: Scripts, header: str, expected: int | None
    ) -> None:
        """Anything else is no Retry-After."""
        assert scripts.compute(f"return m.retryAfterMs('{header}', null, 0)") == expected

    def test_a_date_is_measured_by_the_clock_of_the_server_that_sent_it(
        self, scripts: Scripts
    ) -> None:
        """The device's may be hours off."""
        dates = "'Thu, 01 Jan 1970 00:01:00 GMT', 'Thu, 01 Jan 1970 00:00:50 GMT'"
        assert scripts.compute(f"return m.retryAfterMs({dates}, 7_200_000)") == 10_000

    def test_retry_after_is_obeyed_with_jitter_but_not_beyond_the_lifetime(
        self, scripts: Scripts
    ) -> None:
        """Everybody who was told the same time comes at another one."""
        script = "return times(2, (_, n) => pace.refused({ ...refused, retryAfterMs: 40_000, leftMs: [600_000, 30_000][n] }).sleepMs)"
        assert paced(scripts, script, random=0.5) == [45_000, 30_000]

    @pytest.mark.parametrize("asked", [0, 3])
    def test_a_retry_after_that_asks_for_nothing_is_no_reason_to_come_at_once(
        self, scripts: Scripts, asked: int
    ) -> None:
        """A date that has passed, say: the base delay is the least."""
        script = f"return pace.refused({{ ...refused, retryAfterMs: {asked} }}).sleepMs"
        assert paced(scripts, script) == 500

    def test_the_first_request_after_an_error_does_not_hold(self, scripts: Scripts) -> None:
        """The next one does."""
        script = "pace.failed(failed); const first = pace.ask(600_000); pace.answered(answered); return [first.holdMs, pace.ask(600_000).holdMs]"
        assert paced(scripts, script) == [0, 25_000]

    def test_one_that_is_told_to_hold_longer_does_hold(self, scripts: Scripts) -> None:
        """429 is not the sign of a server that is away."""
        script = "pace.refused({ ...refused, status: 429 }); return pace.ask(600_000).holdMs"
        assert paced(scripts, script) == 25_000

    def test_a_roll_over_waits_as_long_as_the_server_says(self, scripts: Scripts) -> None:
        """However many there were."""
        assert paced(scripts, "return times(5, () => pace.answered(answered).sleepMs)") == [100] * 5

    def test_a_burst_of_news_is_no_burst_of_requests(self, scripts: Scripts) -> None:
        """What came after a long hold is followed at once, what came at once a moment later."""
        script = "return [5, 150, 9_000].map((ageMs) => pace.answered({ ...answered, outcome: 'CHANGED', news: true, backoffMs: 0, ageMs }).sleepMs)"
        assert paced(scripts, script) == [195, 50, 0]


class TestBudgets:
    """When to give up."""

    def test_each_kind_of_trouble_has_one_of_its_own(self, scripts: Scripts) -> None:
        """Errors between refusals use up neither."""
        script = """
            const trouble = times(12, (_, n) => [pace.failed({ ...failed, now: n * 60_000 }), pace.refused({ ...refused, now: n * 60_000 })]);
            return [trouble.flat().some((step) => step.giveUp), pace.failed(failed).giveUp];
        """
        assert paced(scripts, script) == [False, "errors"]

    def test_a_good_answer_fills_it_again(self, scripts: Scripts) -> None:
        """They count what comes in a row."""
        script = """
            times(12, () => pace.failed(failed)); pace.answered(answered);
            return pace.failed({ ...failed, now: 600_000 });
        """
        assert paced(scripts, script) == {"sleepMs": 500}

    def test_being_turned_away_is_counted_as_a_refusal_and_roll_overs_by_themselves(
        self, scripts: Scripts
    ) -> None:
        """SHED with its own pause, and a hold that ran out."""
        script = """
            const spent = (come) => { for (let n = 1; ; n += 1) { const { giveUp } = come(); if (giveUp) return [n, giveUp]; } };
            return [spent(() => pace.answered({ ...answered, outcome: "SHED" })), spent(() => pace.answered(answered))];
        """
        assert paced(scripts, script) == [[41, "refusals"], [1_001, "rollOvers"]]

    def test_many_waits_of_one_host_do_not_storm_it_together(self, scripts: Scripts) -> None:
        """Ten retries at once, then one a second, over all of them."""
        script = (
            "return times(13, () => new Pace(gateway, DEFAULTS, () => 0).failed(failed).sleepMs)"
        )
        assert paced(scripts, script) == [500] * 10 + [1_000, 2_000, 3_000]

    def test_a_retry_that_its_wait_does_not_live_to_see_takes_nobodys_turn(
        self, scripts: Scripts
    ) -> None:
        """However many give up meanwhile, the next one's turn comes soon."""
        script = """
            times(99, () => pace.failed({ ...failed, leftMs: 1_000 }));
            return new Pace(gateway, DEFAULTS, () => 0).failed(failed).sleepMs;
        """
        assert paced(scripts, script) == 2_000

    def test_being_offline_costs_nothing(self, scripts: Scripts) -> None:
        """Nobody's fault; afterwards it looks before it holds."""
        script = (
            "times(50, () => pace.offline()); return [pace.ask(9_000).holdMs, pace.failed(failed)]"
        )
        assert paced(scripts, script) == [0, {"sleepMs": 500}]


class TestLearningTheGateway:
    """Connections that are cut at an age."""

    def cuts(self, scripts: Scripts, *ages: int, between: str = "") -> float | None:
        """The longest hold after requests that were cut at those ages, one after the other; None: any."""
        script = f"""
            let now = 0;
            for (const ageMs of {list(ages)}) {{ now += ageMs; pace.failed({{ ...failed, ageMs, now }}); {between} }}
            return Number.isFinite(gateway.longestHoldMs) ? pace.ask(600_000, pace.answered(answered)).holdMs : null;
        """
        return paced(scripts, script)

    def test_two_cuts_at_about_the_same_age_shorten_the_hold_to_safely_below_it(
        self, scripts: Scripts
    ) -> None:
        """Half: where a browser has sent it again by itself, the age is that of two connections."""
        assert self.cuts(scripts, 20_000, 21_000) == 10_000

    @pytest.mark.parametrize("ages", [(20_000,), (20_000, 5_000), (300, 300, 300)])
    def test_others_do_not(self, scripts: Scripts, ages: tuple[int, ...]) -> None:
        """One alone, two ages, and what died before it was held."""
        assert self.cuts(scripts, *ages) is None

    def test_a_request_that_lived_longer_in_between_clears_the_gateway(
        self, scripts: Scripts
    ) -> None:
        """It cuts nothing at that age."""
        assert self.cuts(scripts, 5_000, 5_000, between="pace.answered(answered);") is None

    @pytest.mark.parametrize(
        "came, holdMs",
        [
            ("{ status: 504, problem: null }", 5_000),
            ("{ status: 502, problem: { detail: 'bad gateway' } }", 5_000),
            ("{ status: 500, problem: { type: 'about:blank' } }", None),
            ("{ status: 200, problem: null }", None),
        ],
        ids=[
            "a page",
            "another's words",
            "our server's words",
            "half an answer, or a page with 200",
        ],
    )
    def test_a_gateway_that_answers_in_its_own_words_has_cut_it(
        self, scripts: Scripts, came: str, holdMs: int | None
    ) -> None:
        """Twice at the same age; what our server says of itself, and half of what it says, is no cut."""
        script = f"""
            [10_000, 20_000].forEach((now) => pace.failed({{ ...failed, ...{came}, ageMs: 10_000, now }}));
            return Number.isFinite(gateway.longestHoldMs) ? gateway.longestHoldMs : null;
        """
        assert paced(scripts, script) == holdMs

    def test_the_gateways_own_503_is_a_cut_as_well(self, scripts: Scripts) -> None:
        """Ours says why in a document."""
        script = """
            [10_000, 20_000].forEach((now) => pace.refused({ ...refused, ageMs: 10_000, now }));
            return gateway.longestHoldMs;
        """
        assert paced(scripts, script) == 5_000

    def test_an_answer_that_is_hardly_older_clears_nothing(self, scripts: Scripts) -> None:
        """Timers are coarse."""
        script = """
            gateway.cut(10_000, 25_000, 10_000); gateway.lasted(10_100); gateway.cut(10_000, 25_000, 30_000);
            return gateway.longestHoldMs;
        """
        assert paced(scripts, script) == 5_000

    def test_many_that_end_together_are_a_server_that_went_down(self, scripts: Scripts) -> None:
        """The second was on its way when the first was cut."""
        script = "times(5, (_, n) => gateway.cut(9_000, 25_000, 9_000 + n)); return gateway.longestHoldMs === Infinity"
        assert paced(scripts, script) is True

    def test_it_is_kept_for_that_host_and_learned_again_if_it_was_too_long(
        self, scripts: Scripts
    ) -> None:
        """By every line of requests to it."""
        script = """
            [[6_000, 6_000], [6_000, 12_000]].forEach(([age, at]) => gateway.cut(age, 25_000, at));
            const first = new Pace(gateway).ask(600_000).holdMs;
            [[5_500, 20_000], [5_500, 30_000]].forEach(([age, at]) => gateway.cut(age, first, at));
            return [first, new Pace(gateway).ask(600_000).holdMs];
        """
        assert paced(scripts, script) == [3_000, 1_500]


class TestAsking:
    """What the next request says."""

    def test_the_last_hold_ends_before_the_wait_does(self, scripts: Scripts) -> None:
        """And what is left is never less than nothing."""
        script = "return [600_000, 10_000, 100].map((leftMs) => pace.ask(leftMs).holdMs)"
        assert paced(scripts, script) == [25_000, 9_500, 0]

    def test_the_read_timeout_follows_the_servers(self, scripts: Scripts) -> None:
        """Which it says with each answer."""
        script = "const before = pace.ask(600_000).timeoutMs; pace.answered({ ...answered, readTimeoutMs: 54_000 }); return [before, pace.ask(600_000).timeoutMs]"
        assert paced(scripts, script) == [35_000, 55_000]

    def test_an_answer_has_a_second_to_travel(self, scripts: Scripts) -> None:
        """However little the server allows."""
        script = "pace.answered({ ...answered, readTimeoutMs: 24_001 }); return pace.ask(600_000).timeoutMs"
        assert paced(scripts, script) == 26_000

    @pytest.mark.parametrize(
        "answer, is_calm",
        [
            ("{ ageMs: 3, grantedMs: 0, backoffMs: 1_000 }", True),
            ("{ ageMs: 3, grantedMs: 24_000, outcome: 'DRAINING', backoffMs: 900 }", True),
            ("{ ageMs: 900, grantedMs: 950, backoffMs: 60 }", True),
            ("{ ageMs: 3, grantedMs: 0, backoffMs: 0 }", False),
            ("{ ageMs: 1_500, grantedMs: 24_000, backoffMs: 0 }", False),
        ],
    )
    def test_a_server_that_asks_for_calm_or_holds_is_not_taken_for_a_cache(
        self, scripts: Scripts, answer: str, is_calm: bool
    ) -> None:
        """Its hint counts, or that it held about as long as it said."""
        script = f"times(4, () => pace.answered({{ ...answered, ...{answer} }})); return pace.ask(9_000).pastCaches"
        assert paced(scripts, script) is not is_calm

    def test_answers_that_come_at_once_and_say_nothing_slow_it_down_and_go_past_caches(
        self, scripts: Scripts
    ) -> None:
        """Two are let pass; a hold afterwards makes it trust again."""
        script = """
            const cached = times(5, () => pace.answered({ ...answered, outcome: "CHANGED", ageMs: 3, backoffMs: 0 }).sleepMs);
            const past = pace.ask(600_000).pastCaches;
            pace.answered(answered);
            return [cached, past, pace.ask(600_000).pastCaches];
        """
        assert paced(scripts, script) == [[0, 0, 500, 1_000, 2_000], True, False]


class TestReadingAnAnswer:
    """What a task's answer means to a wait."""

    @pytest.mark.parametrize(
        "answer, meaning, version",
        [
            ("m.task('a', 6)", "news", 6),
            ("m.task('a', 5)", "nothing", 5),
            ("m.task('a', 4)", "nothing", 5),
            ("m.task('a', 4, { stalled: true })", "nothing", 5),
            ("m.task('a', 2, { reset: true })", "reset", 2),
            ("m.task('a', 5, { stalled: true })", "stalled", 5),
            ("m.done('a', 7)", "over", 7),
            ("m.done('a', 5)", "over", 5),
        ],
    )
    def test_of_a_client_that_knows_version_5(
        self, scripts: Scripts, answer: str, meaning: str, version: int
    ) -> None:
        """Older ones come from caches, unless the server says that the cursor is to be reset."""
        script = f"const wait = new m.Wait('a', 5, 0); return [wait.read({answer}), wait.version]"
        assert scripts.compute(script) == [meaning, version]

    def test_stalled_is_news_once(self, scripts: Scripts) -> None:
        """And again after it has moved."""
        script = """
            const wait = new m.Wait("a", 5, 0);
            return [true, true, false, true].map((stalled) => wait.read(m.task("a", 5, { stalled })));
        """
        assert scripts.compute(script) == ["stalled", "nothing", "nothing", "stalled"]

    @pytest.mark.parametrize(
        "status, text, kind",
        [
            (200, '{"tasks": []}', "answer"),
            (200, "<html>", "failed"),
            (200, '{"tasks": [', "failed"),
            (204, "", "failed"),
            (404, "{}", "problem"),
            (0, "", "problem"),
            (429, "", "refused"),
            (408, "", "failed"),
            (503, "<html>", "refused"),
            (502, "<html>", "failed"),
            (500, "{}", "failed"),
        ],
    )
    def test_a_response_is_one_of_four_things(
        self, scripts: Scripts, status: int, text: str, kind: str
    ) -> None:
        """Pages of gateways and half an answer are no answers."""
        script = f"return m.classify({{ status: {status}, text: '{text}' }}, 0).kind"
        assert scripts.compute(script) == kind
