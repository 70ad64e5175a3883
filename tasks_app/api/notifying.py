"""Claim checks as somebody asks for them: which target that is, and leaving one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID

from tasks_app import conf
from tasks_app.api.notices import InboxNotice, WebhookNotice
from tasks_app.errors import NotifyRefused
from tasks_app.store import Promised, Target, find_webhook_secret, promise
from tasks_app.store.deliveries import MOST_PER_TASK
from tasks_app.store.pool import Transaction
from tasks_app.webhooks.lookups import AddressRefused, LookupFailed, addresses_of
from tasks_app.webhooks.targets import INBOX, Hook, read, webhook

_LOOKUP_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A target that somebody named. `trouble` says why it can't be one from now on; one that it is already, it stays."""

    target: Target
    trouble: NotifyRefused | None = None


async def asked_for(notice: InboxNotice | WebhookNotice, owner: str | None) -> Asked:
    """The target that a body of `owner`'s names. Raises NotifyRefused for what can't be one, whoever asks and whenever."""
    if isinstance(notice, InboxNotice):
        return Asked(INBOX)
    settings = conf.current()
    if not settings.WEBHOOKS:
        raise NotifyRefused("This server sends no webhooks; ask for the inbox instead.", "webhook")
    target = webhook(notice.webhook, settings.WEBHOOK_TEST_HOSTS)
    hook = read(target.address, settings.WEBHOOK_TEST_HOSTS)
    return Asked(target, await _trouble(hook, owner or ""))


async def _trouble(hook: Hook, owner: str) -> NotifyRefused | None:
    try:
        async with asyncio.timeout(_LOOKUP_SECONDS):
            await addresses_of(hook, owner)
    except (AddressRefused, LookupFailed, TimeoutError):
        # The same words for each: who asks shall not learn which names there are inside.
        return NotifyRefused(
            f"webhook names the host {hook.host!r:.80}; it must have public addresses, and no others, and none were "
            "found. Check the name, or try again.",
            "webhook",
        )
    return None


async def leave_check(
    transaction: Transaction, task_id: UUID, owner: str, asked: Asked
) -> Promised:
    """Leave a claim check for a task that the transaction has locked or stored. Raises NotifyRefused."""
    trouble = asked.trouble
    if asked.target != INBOX and await transaction.run(find_webhook_secret(owner)) is None:
        trouble = NotifyRefused(
            "webhook: there is no secret yet to sign with for the owner of this task; its operator makes one with "
            "manage.py createwebhooksecret --owner OWNER.",
            "webhook",
        )
    promised = await transaction.run(promise(task_id, asked.target, may_be_new=trouble is None))
    if promised is None:
        raise trouble or NotifyRefused(
            f"The end of this task is told to {MOST_PER_TASK} others already, which is the most; use one of them.",
            "inbox" if asked.target == INBOX else "webhook",
        )
    return promised
