"""Kit: timestamp and body signed together, and batches of up to 100 events."""

from __future__ import annotations

from datetime import date
from typing import ClassVar

from attrs import frozen

from gunicorn_admission.webhooks.providers.batch import Entry, read_batch
from gunicorn_admission.webhooks.providers.facts import (
    DAY,
    HOUR,
    MINUTE,
    Coverage,
    EventIdAt,
    Facts,
    Redelivery,
    Retries,
    Tolerance,
)
from gunicorn_admission.webhooks.providers.payload import Json, as_id, as_object, as_text
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request
from gunicorn_admission.webhooks.providers.signatures import timed_list
from gunicorn_admission.webhooks.providers.timestamps import from_iso

__all__ = ["Kit"]


@frozen(kw_only=True)
class Kit(Provider):
    """Webhook endpoints of Kit (once ConvertKit). The secret is the endpoint's."""

    facts: ClassVar[Facts] = Facts(
        name="kit",
        title="Kit",
        docs="https://developers.kit.com/webhooks/verifying-signatures",
        checked=date(2026, 11, 30),
        covers=Coverage.BODY,
        event_id=EventIdAt(body="events[].id", signed=True),
        tolerance=Tolerance(max_age=5 * MINUTE, max_future=5 * MINUTE),
        retries=Retries(
            count=7,
            delays=(
                30.0,
                2 * MINUTE,
                15 * MINUTE,
                1 * HOUR,
                4 * HOUR,
                12 * HOUR,
                24 * HOUR,
            ),
            span=148_650.0,
            signed_anew=True,
        ),
        redelivery=Redelivery(
            listing="GET /v4/webhook_endpoints/{id}/deliveries?status=failed",
            window=30 * DAY,
        ),
        respects_retry_after=True,
        unsure=("deadline",),
        notes=(
            "410 ends the retries of a delivery at once.",
            "Retry-After on 429 and 503 counts from 1 s to 24 h.",
            "A retry has the same delivery_id; an event may also come again in another delivery.",
        ),
    )

    def claim(self, request: Request) -> Claim:
        """Read ``X-Kit-Signature``; a rotation has a ``v1`` for each valid secret."""
        return timed_list(
            request,
            "X-Kit-Signature",
            time="t",
            signature="v1",
            between=",",
            behind_time=b".",
        )

    def describe(self, request: Request) -> Description:
        """Split the events of a delivery."""
        return Description(
            event_id=as_id(as_object(request.json).get("delivery_id")),
            items=read_batch(request.body, _read, member="events"),
        )


def _read(event: Json) -> Entry:
    fields = as_object(event)
    return Entry(
        as_id(fields.get("id")),
        as_text(fields.get("type")),
        from_iso(as_text(fields.get("created"))),
    )
