"""The tests' settings, with a layer in memory that can be overrun: LAYER_GATE names the file that closes it."""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403

CHANNEL_LAYERS = {
    "asyncpoll": {
        "BACKEND": "tests.fleet.gated.GatedLayer",
        "CONFIG": {"closed_by": os.environ["LAYER_GATE"], "capacity": 2},
    }
}
