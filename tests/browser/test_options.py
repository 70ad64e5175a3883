"""What can be set in asyncpoll.js: what makes no sense is refused, and types and documentation have the rest."""

from __future__ import annotations

import re

import pytest

from tests.browser.scripts import STATIC, Scripts


@pytest.mark.parametrize(
    "options, sentence",
    [
        ("{ lifetime: 5 }", "lifetime is none of token, ticket, credentials, lifetimeMs"),
        ("{ baseDelayMs: -1 }", "baseDelayMs is -1; it must be a number from 0 up"),
        ("{ baseDelayMs: 0 }", "baseDelayMs is 0; pauses must have 1 millisecond or more"),
        ("{ maxDelayMs: 0.5 }", "maxDelayMs is 0.5; pauses must have 1 millisecond or more"),
        ("{ budgets: { error: 1 } }", "error is none of errors, refusals, rollOvers"),
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


@pytest.mark.parametrize(
    "options, sentence",
    [
        ("{ timeout: 5 }", "timeout is none of timeoutMs, intervalMs"),
        ("{ intervalMs: 0 }", "intervalMs is 0; pauses must have 1 millisecond or more"),
        ("{ maxIntervalMs: 0 }", "maxIntervalMs is 0; pauses must have 1 millisecond or more"),
        ("{ growth: 0.5 }", "growth is 0.5; it must be a number from 1 up"),
        ("{ timeoutMs: Infinity }", "timeoutMs is Infinity; it can be 2147483647 at most"),
    ],
)
def test_a_rhythm_that_makes_no_sense_is_refused(
    scripts: Scripts, options: str, sentence: str
) -> None:
    """Before anything is sent."""
    script = f"try {{ await m.waitForTerminal('/job', {options}); }} catch (error) {{ return error.message; }}"
    assert scripts.compute(script).startswith(sentence)


def test_the_types_describe_what_there_is(scripts: Scripts) -> None:
    """Every name that is exported, every option, every method of the client."""
    types = (STATIC / "asyncpoll.d.ts").read_text()
    exported, options, rhythm, methods = scripts.compute(
        "const ours = await import('/asyncpoll.js');"
        "const names = [m.DEFAULTS, m.SHORT_POLL].map(Object.keys);"
        "return [Object.keys(ours), ...names, Object.getOwnPropertyNames(m.Asyncpoll.prototype)]"
    )
    assert set(re.findall(r"^export (?:class|function|const) (\w+)", types, re.M)) == set(exported)
    for interface, names in (("Options", options), ("ShortPollOptions", rhythm)):
        declared = re.search(rf"export interface {interface} \{{(.*?)\n\}}", types, re.S)
        assert declared is not None
        assert re.findall(r"^  (\w+)\?:", declared[1], re.M) == names
    documented = (STATIC.parents[2] / "docs" / "browser.md").read_text().partition("## Options")[2]
    rows = "".join(re.findall(r"^\| (.*?) \|", documented, re.M)[1:])
    assert re.findall(r"`(\w+)`", rows) == options
    client = re.search(r"export class Asyncpoll \{(.*?)\n\}", types, re.S)
    assert client is not None
    assert set(re.findall(r"^  (\w+)[<(]", client[1], re.M)) == set(methods)
