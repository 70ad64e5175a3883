"""What `manage.py runbridge` does: be the bridge of a fleet, apart from the web."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from tasks_app import conf
from tasks_app.errors import ConfigurationError
from tasks_app.store.migrated import refuse_unmigrated
from tasks_app.store.pool import Pool
from tasks_app.wakeup.pooler import check_listen_connection
from tasks_app.wakeup.service import WakeupService, is_shared, private_layer


def relay(watch: Callable[[WakeupService], object]) -> None:
    """Relay wake-ups, or stand by to, until SIGTERM or SIGINT. Raises ConfigurationError where nobody would hear.

    `watch` is given the service to look at.
    """
    if not is_shared(private_layer()):
        alias = conf.current().CHANNEL_LAYER
        raise ConfigurationError(
            f"CHANNEL_LAYERS[{alias!r}] is private to each process, so web processes listen for themselves and "
            f"runbridge would talk to nobody; give CHANNEL_LAYERS[{alias!r}] the BACKEND "
            "'tasks_app.wakeup.redis.RedisLayer' (asyncpoll's own settings: set CHANNEL_REDIS_URL), or leave runbridge out."
        )
    refuse_unmigrated("bridge")
    asyncio.run(_relay(watch))


async def _relay(watch: Callable[[WakeupService], object]) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await check_listen_connection("listener")
    pool = Pool("bridge", size=1)
    await pool.open()
    service = WakeupService(pool, may_lead=True)
    watch(service)
    service.start()
    await stopping.wait()
    await service.stop()
    await pool.close()
