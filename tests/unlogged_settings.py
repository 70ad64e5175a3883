"""The settings of tests that meet faults, as in a project that has set up no logging."""

from tests.fault_settings import *  # noqa: F403

LOGGING: dict[str, object] = {}
