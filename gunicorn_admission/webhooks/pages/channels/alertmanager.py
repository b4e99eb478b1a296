"""Pages as alerts of Prometheus' Alertmanager (API v2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from gunicorn_admission.webhooks.pages.channels.channel import address
from gunicorn_admission.webhooks.pages.channels.post import post_json
from gunicorn_admission.webhooks.pages.wording import Notice

__all__ = ["AlertmanagerChannel"]

# An alert that is not posted again is taken as resolved at its endsAt; so it lives for some
# missed posts, and not for ever when this process is gone.
_LIVES: Final = timedelta(minutes=5)


class AlertmanagerChannel:
    """
    Posts each page as an alert, again every minute while it goes on, and its end.

    Labels are few and from closed lists, so that grouping and silences work: ``alertname``,
    ``severity``, ``boundary``, ``condition``, ``consumer``, ``source`` (at the intake) and
    ``page``. The event, the ceiling and the counts are annotations.

    Args:
        url: Of the Alertmanager, such as ``http://localhost:9093``.

    Thread safety: ``send`` may run in many threads.
    """

    repeat = 60.0
    refreshes = True

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/") + "/api/v2/alerts"
        self.name = f"alertmanager {address(url)}"

    def send(self, notice: Notice) -> None:
        """Post the alert. Raises ChannelError where no 2xx came."""
        page = notice.page
        labels = {
            "alertname": "Webhook" + page.condition.value.title().replace("_", ""),
            "severity": page.severity.value,
            "boundary": page.condition.boundary.value,
            "condition": page.condition.value,
            "page": page.key,
        }
        if page.consumer:
            labels["consumer"] = page.consumer
        elif page.source:
            labels["source"] = page.source
        annotations = {"summary": notice.text, "count": str(notice.count)}
        if page.event_id:
            annotations["event"] = f"{page.source}/{page.event_id}"
        if page.ceiling:
            annotations["ceiling"] = f"{page.ceiling.hard or page.ceiling.soft} {page.ceiling.unit}"
        if page.runbook:
            annotations["runbook_url"] = page.runbook
        if notice.resolved_at is None:
            ends = datetime.now(UTC) + _LIVES
        else:
            ends = datetime.fromtimestamp(notice.resolved_at / 1e6, UTC)
        alert = {
            "labels": labels,
            "annotations": annotations,
            "startsAt": datetime.fromtimestamp(notice.first_at / 1e6, UTC).isoformat(),
            "endsAt": ends.isoformat(),
        }
        post_json(self._url, [alert])
