"""Programs from Debian's packages that some tests run; nothing but tests needs them."""

from __future__ import annotations

import os
import shutil

import pytest

_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def program(name: str, package: str | None = None) -> str:
    """Where `name` is installed. Without it the test is skipped, and fails where CI is set: nothing is missing there."""
    path = shutil.which(name, path=_PATH)
    if path is None:
        reason = (
            f"{name} is not installed: apt-get install --no-install-recommends {package or name}"
        )
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path
