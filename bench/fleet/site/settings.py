"""The settings that asyncpoll comes with, and one route more."""

from asyncpoll.settings import *  # noqa: F403 (all of them)

ROOT_URLCONF = "bench.fleet.site.urls"
