"""Pages as HTTP requests: for chat rooms, incident tools and everything that takes JSON."""

from __future__ import annotations

import hashlib
from typing import Any

import attrs

from gunicorn_admission.webhooks.pages.channels.channel import address
from gunicorn_admission.webhooks.pages.channels.post import post_json
from gunicorn_admission.webhooks.pages.wording import Notice

__all__ = ["WebhookChannel", "document"]


class WebhookChannel:
    """
    Posts JSON with the whole page; ``text`` is what chat rooms show.

    ``Idempotency-Key`` is the same when a notice is sent twice because an answer was lost.

    Args:
        url: Where to; its path and query may hold a secret and are never logged.

    Thread safety: ``send`` may run in many threads.
    """

    repeat = 900.0
    refreshes = False

    def __init__(self, url: str) -> None:
        self._url = url
        digest = hashlib.sha256(url.encode()).hexdigest()[:8]
        self.name = f"webhook {address(url)} {digest}"

    def send(self, notice: Notice) -> None:
        """Post the page. Raises ChannelError where no 2xx came."""
        status = "resolved" if notice.resolved_at else "firing"
        key = f"{notice.page.key}/{notice.first_at}/{notice.count}/{status}"
        post_json(self._url, document(notice), {"Idempotency-Key": key})


def document(notice: Notice) -> dict[str, Any]:
    """Return a notice as a JSON document; times are microseconds since the epoch."""
    page = notice.page
    return {
        "text": notice.text,
        "status": "resolved" if notice.resolved_at else "firing",
        "key": page.key,
        "boundary": page.condition.boundary.value,
        "condition": page.condition.value,
        "severity": page.severity.value,
        "consumer": page.consumer,
        "source": page.source,
        "event_id": page.event_id,
        "ceiling": None if page.ceiling is None else attrs.asdict(page.ceiling),
        "reason": page.reason,
        "runbook": page.runbook,
        "count": notice.count,
        "first_at": notice.first_at,
        "last_at": notice.last_at,
        "resolved_at": notice.resolved_at,
        "lags": dict(notice.lags),
    }
