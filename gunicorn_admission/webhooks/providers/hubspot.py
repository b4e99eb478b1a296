"""HubSpot: an HMAC of method, URL, body and timestamp, and batches of events."""

from __future__ import annotations

import re
from datetime import date
from typing import ClassVar, Final
from urllib.parse import unquote

from attrs import frozen

from gunicorn_admission.webhooks.providers.batch import Entry, read_batch
from gunicorn_admission.webhooks.providers.facts import (
    DAY,
    MINUTE,
    Coverage,
    EventIdAt,
    Facts,
    Retries,
    Tolerance,
)
from gunicorn_admission.webhooks.providers.payload import (
    Json,
    as_id,
    as_number,
    as_object,
    as_text,
)
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request
from gunicorn_admission.webhooks.providers.signatures import signed_time
from gunicorn_admission.webhooks.providers.timestamps import from_milliseconds

__all__ = ["HubSpot"]

_TIMESTAMP: Final = "X-HubSpot-Request-Timestamp"
# HubSpot signs the URL with these, and only these, decoded.
_DECODED: Final = re.compile("%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)", re.ASCII | re.IGNORECASE)


@frozen(kw_only=True)
class HubSpot(Provider):
    """
    Webhooks of HubSpot apps, by signature version 3. The secret is the app's client secret.

    HubSpot sends versions 1 and 2 beside it. They are plain hashes of secret and request, which
    whoever has seen one can extend, and have no timestamp: they are not taken.
    """

    in_base64: ClassVar[bool] = True

    facts: ClassVar[Facts] = Facts(
        name="hubspot",
        title="HubSpot",
        docs="https://developers.hubspot.com/docs/apps/developer-platform/build-apps/"
        "authentication/request-validation",
        checked=date(2026, 11, 30),
        covers=Coverage.URL_AND_BODY,
        event_id=EventIdAt(body="[].eventId", signed=True),
        tolerance=Tolerance(max_age=5 * MINUTE, max_future=5 * MINUTE),
        deadline=5.0,
        retries=Retries(
            count=10,
            span=DAY,
            after="5xx, 429, timeouts and failed connections, not 400, 401, 403, 404 and 405",
            signed_anew=True,
        ),
        respects_retry_after=True,
        unsure=("deadline", "retries", "respects_retry_after"),
        notes=(
            "eventId is not unique: the id kept is made of portal, subscription, event and "
            "time of the event.",
            "attemptNumber differs in a retry: same id, other bytes.",
            "Retry-After was said to be obeyed on 429; another note says the retries go on for "
            "3 days.",
        ),
    )

    def claim(self, request: Request) -> Claim:
        """Read ``X-HubSpot-Signature-v3`` and its timestamp; the method is always POST."""
        signature = request.headers.require("X-HubSpot-Signature-v3").encode()
        sent, timestamp = signed_time(request, _TIMESTAMP, from_milliseconds)
        url = request.public_url()
        decoded = _DECODED.sub(lambda found: unquote(found.group()), url)
        return Claim(
            signatures=(signature,),
            messages=tuple(
                (b"POST", one.encode(errors="surrogatepass"), request.body, sent)
                for one in dict.fromkeys((decoded, url))
            ),
            timestamp=timestamp,
        )

    def describe(self, request: Request) -> Description:
        """Split the events of a batch."""
        return Description(items=read_batch(request.body, _read))


def _read(event: Json) -> Entry:
    fields = as_object(event)
    milliseconds = as_number(fields.get("occurredAt"))
    names = ("portalId", "subscriptionId", "eventId", "occurredAt")
    ids = [as_id(fields.get(name)) or "" for name in names]
    return Entry(
        as_text(":".join(ids)) if ids[2] else None,
        as_text(fields.get("subscriptionType")) or as_text(fields.get("eventType")),
        None if milliseconds is None else milliseconds / 1000,
    )
