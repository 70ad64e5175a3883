"""asyncpoll.js in a page that nobody sees, or on a device without a network."""

from __future__ import annotations

from tests.browser.scripts import LIFETIME_MS, Scripts


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
        assert scripts.run(script, LIFETIME_MS)["error"]["name"] == "PollLifetimeExceeded"
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
