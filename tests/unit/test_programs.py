"""Tests that need a program that is not there."""

import pytest

from tests.programs import program


def test_a_program_is_found() -> None:
    """Its path."""
    assert program("sh").endswith("/sh")


def test_without_the_program_a_test_is_skipped_with_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a newcomer's machine."""
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="install --no-install-recommends some-package"):
        program("no-such-program", package="some-package")


def test_where_everything_is_checked_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A skip nobody reads would be as good as no test."""
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-program is not installed"):
        program("no-such-program")
