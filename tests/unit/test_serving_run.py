"""What `serve` says before it serves."""

from __future__ import annotations

import os

import pytest

from tasks_app.serving import run


@pytest.mark.parametrize("application", [None, "", "tests.holdsite.asgi.application"])
def test_serving_without_an_application_says_whose_is_served_and_how_to_change_it(
    settings, monkeypatch, application
):
    """A project's own asgi.py is not found by itself."""
    settings.ASGI_APPLICATION = application
    monkeypatch.setattr(run, "_run", lambda fd, *more, **options: os.close(fd))
    said = []
    run.serve("127.0.0.1", 0, 1, said.append)
    spoken = [line for line in said if "set it to that, for example" in line]
    assert bool(spoken) is not bool(application)
