"""How connections of our own are described."""

from __future__ import annotations

import pytest

from tasks_app.errors import ConfigurationError
from tasks_app.store import dsn


@pytest.mark.parametrize("url", ["hidden", "postgresql://me:hid%zzden@host/name"])
def test_a_wrong_listen_url_is_refused_with_the_remedy_and_without_its_password(
    settings: object, url: str
) -> None:
    """In one sentence of `serve`, `runbridge` and `runworker`."""
    settings.ASYNCPOLL = {"LISTEN_DATABASE_URL": url}  # type: ignore[attr-defined]
    with pytest.raises(ConfigurationError, match="LISTEN_DATABASE_URL can't be read") as caught:
        dsn.listen_parameters("x")
    assert "hid" not in str(caught.value)
    assert caught.value.__suppress_context__
