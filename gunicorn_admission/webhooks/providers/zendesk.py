"""Zendesk: timestamp and body signed together, for events and for what triggers send."""

from __future__ import annotations

from datetime import date
from typing import ClassVar, Final

from attrs import frozen

from gunicorn_admission.webhooks.providers.facts import (
    HOUR,
    MINUTE,
    Coverage,
    Disable,
    EventIdAt,
    Facts,
    Redelivery,
    Retries,
    Tolerance,
)
from gunicorn_admission.webhooks.providers.outcome import IdSource
from gunicorn_admission.webhooks.providers.payload import as_id, as_object, as_text
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request
from gunicorn_admission.webhooks.providers.signatures import signed_time
from gunicorn_admission.webhooks.providers.timestamps import from_iso

__all__ = ["Zendesk"]

_TIMESTAMP: Final = "X-Zendesk-Webhook-Signature-Timestamp"


@frozen(kw_only=True)
class Zendesk(Provider):
    """Webhooks of Zendesk. The secret is the webhook's signing secret."""

    in_base64: ClassVar[bool] = True

    facts: ClassVar[Facts] = Facts(
        name="zendesk",
        title="Zendesk",
        docs="https://developer.zendesk.com/documentation/webhooks/verifying/",
        checked=date(2026, 11, 30),
        covers=Coverage.BODY,
        event_id=EventIdAt(body="id", header="X-Zendesk-Webhook-Invocation-Id", signed=True),
        # Not said whether a retry is signed anew; the id of an event is signed, so that a
        # wider window lets no replay through.
        tolerance=Tolerance(max_age=1 * HOUR, max_future=5 * MINUTE),
        deadline=10.0,
        retries=Retries(after="409, and 429 or 503 with a Retry-After below a minute"),
        disable=Disable(
            rule="paused while 70 % of the requests of 5 minutes, or more than 1000, fail",
        ),
        redelivery=Redelivery(listing="GET /api/v2/webhooks/{webhook_id}/invocations"),
        respects_retry_after=True,
        unsure=("deadline", "retries", "disable", "redelivery", "respects_retry_after"),
        notes=(
            "Retries and a circuit breaker are documented, their numbers are from others; "
            "for the deadline both 10 and 12 s are given.",
            "What a trigger or an automation sends is written by the administrator: its fields "
            "are no event ids, and the id in the header, which is not signed, is taken.",
        ),
    )

    def claim(self, request: Request) -> Claim:
        """Read ``X-Zendesk-Webhook-Signature`` and its timestamp, which is ISO 8601."""
        signature = request.headers.require("X-Zendesk-Webhook-Signature").encode()
        sent, timestamp = signed_time(request, _TIMESTAMP, from_iso)
        return Claim(
            signatures=(signature,),
            messages=((sent, request.body),),
            timestamp=timestamp,
        )

    def describe(self, request: Request) -> Description:
        """Read id and type of an event; else the id of the invocation."""
        event = as_object(request.json)
        event_type = as_text(event.get("type"))
        if event_type is not None and event_type.startswith("zen:event-type:"):
            event_id = as_id(event.get("id"))
            if event_id is not None:
                return Description(event_id=event_id, event_type=event_type)
        return Description(
            event_id=request.headers.find_id("X-Zendesk-Webhook-Invocation-Id"),
            id_source=IdSource.HEADER,
            event_type=event_type,
        )
