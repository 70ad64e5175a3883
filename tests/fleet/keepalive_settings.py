"""The tests' settings, with Redis connections that the kernel gives up after two seconds in which nothing arrives."""

from __future__ import annotations

import os
import socket
from urllib.parse import urlsplit

from tests.settings import *  # noqa: F403

_server = urlsplit(os.environ["CHANNEL_REDIS_URL"])
KEEPALIVE = {socket.TCP_KEEPIDLE: 1, socket.TCP_KEEPINTVL: 1, socket.TCP_KEEPCNT: 1}
CHANNEL_LAYERS = {
    "asyncpoll": {
        "BACKEND": "tasks_app.wakeup.redis.RedisLayer",
        "CONFIG": {
            "hosts": [
                {
                    "host": _server.hostname,
                    "port": _server.port,
                    "socket_keepalive": True,
                    "socket_keepalive_options": KEEPALIVE,
                }
            ]
        },
    }
}
