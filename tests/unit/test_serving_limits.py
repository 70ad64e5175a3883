"""How many requests the open-files limit allows."""

from __future__ import annotations

import resource

from tasks_app.serving.limits import RESERVED_FILES, holds_within, raise_open_files, shortage


def test_enough_files_hold_all() -> None:
    """And there is nothing to say."""
    assert holds_within(10_000 + RESERVED_FILES, 10_000) == 10_000
    assert holds_within(resource.RLIM_INFINITY, 10_000) == 10_000
    assert shortage(10_000, 10_000) is None


def test_too_few_files_hold_fewer_and_the_remedy_is_said() -> None:
    """The reserve is not for holds, unless there is hardly more than it."""
    assert holds_within(4096, 10_000) == 4096 - RESERVED_FILES
    assert holds_within(256, 10_000) == 128
    line = shortage(4096 - RESERVED_FILES, 10_000)
    assert line is not None
    assert (
        "hold 3584 requests: raise it to 10512 (ulimit -n, LimitNOFILE=), or lower MAX_HELD."
        in line
    )


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    """Nobody should have to do by hand what the process may do itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
        assert raise_open_files(100) == 100
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= soft
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
