"""Square: an HMAC of the notification URL and the body."""

from __future__ import annotations

from datetime import date
from typing import ClassVar

from attrs import frozen

from gunicorn_admission.webhooks.providers.facts import (
    DAY,
    HOUR,
    MINUTE,
    Coverage,
    EventIdAt,
    Facts,
    Redelivery,
    Retries,
)
from gunicorn_admission.webhooks.providers.payload import as_id, as_object, as_text
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request
from gunicorn_admission.webhooks.providers.timestamps import from_iso

__all__ = ["Square"]


@frozen(kw_only=True)
class Square(Provider):
    """Webhooks of Square. The secret is the subscription's signature key."""

    in_base64: ClassVar[bool] = True

    facts: ClassVar[Facts] = Facts(
        name="square",
        title="Square",
        docs="https://developer.squareup.com/docs/webhooks/overview",
        checked=date(2026, 11, 30),
        covers=Coverage.URL_AND_BODY,
        event_id=EventIdAt(body="event_id", signed=True),
        deadline=10.0,
        retries=Retries(
            count=11,
            delays=(
                1 * MINUTE,
                2 * MINUTE,
                4 * MINUTE,
                8 * MINUTE,
                16 * MINUTE,
                32 * MINUTE,
                1 * HOUR,
                2 * HOUR,
                4 * HOUR,
                8 * HOUR,
                8 * HOUR,
            ),
            span=86_580.0,
        ),
        redelivery=Redelivery(listing="POST /v2/events", window=28 * DAY),
        unsure=("deadline",),
        notes=(
            "The deadline was 10 s; newer pages say as soon as possible. Older pages also say "
            "72 hours of retries instead of 24.",
            "square-retry-number and -reason tell of a retry, "
            "square-initial-delivery-timestamp of the first attempt.",
            "Events can be searched only from when they were enabled, with a personal token.",
        ),
    )

    def claim(self, request: Request) -> Claim:
        """Read ``x-square-hmacsha256-signature``; the older SHA-1 header is not looked at."""
        signature = request.headers.require("x-square-hmacsha256-signature").encode()
        url = request.public_url().encode(errors="surrogatepass")
        return Claim(signatures=(signature,), messages=((url, request.body),))

    def describe(self, request: Request) -> Description:
        """Read id, type and time from the body."""
        event = as_object(request.json)
        return Description(
            event_id=as_id(event.get("event_id")),
            event_type=as_text(event.get("type")),
            timestamp=from_iso(as_text(event.get("created_at"))),
        )
