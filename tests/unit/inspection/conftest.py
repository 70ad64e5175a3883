from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.inspection.made_up import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty site-packages directory."""
    return Site(tmp_path / "venv")
