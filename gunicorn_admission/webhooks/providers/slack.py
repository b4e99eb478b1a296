"""Slack: timestamp and body signed together, 3 seconds, and a challenge to answer first."""

from __future__ import annotations

from datetime import date
from typing import ClassVar

from attrs import frozen

from gunicorn_admission.webhooks.providers.facts import (
    MINUTE,
    Coverage,
    Disable,
    EventIdAt,
    Facts,
    Retries,
    Tolerance,
)
from gunicorn_admission.webhooks.providers.payload import as_id, as_object, as_text
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request
from gunicorn_admission.webhooks.providers.signatures import prefixed, signed_time
from gunicorn_admission.webhooks.providers.timestamps import from_seconds

__all__ = ["Slack"]

_TIMESTAMP = "X-Slack-Request-Timestamp"


@frozen(kw_only=True)
class Slack(Provider):
    """Slack's Events API, slash commands and interactions. The secret is the signing secret."""

    facts: ClassVar[Facts] = Facts(
        name="slack",
        title="Slack",
        docs="https://docs.slack.dev/apis/events-api/",
        checked=date(2026, 11, 30),
        covers=Coverage.BODY,
        event_id=EventIdAt(body="event_id", signed=True),
        # Slack advises 5 minutes, and its last retry comes after 6. Where that is not signed
        # anew it is genuine all the same, and a replay has the same event id.
        tolerance=Tolerance(max_age=10 * MINUTE, max_future=5 * MINUTE),
        deadline=3.0,
        retries=Retries(
            count=3,
            delays=(0.0, 1 * MINUTE, 5 * MINUTE),
            span=6 * MINUTE,
            after="any answer but 2xx, and 3 s without one, even while the first is worked on",
        ),
        disable=Disable(
            rule="fewer than 5 % of the deliveries of 60 minutes succeeded",
        ),
        respects_retry_after=False,
        unsure=("respects_retry_after",),
        notes=(
            "The header X-Slack-No-Retry: 1 on an answer other than 2xx stops the retries.",
            "Slash commands and interactions have no event id; their bytes are unique.",
            "Missed events can only be found by reading the conversations again.",
        ),
    )

    def claim(self, request: Request) -> Claim:
        """Read ``X-Slack-Signature`` and its timestamp."""
        signature = prefixed(request, "X-Slack-Signature", "v0=")
        sent, timestamp = signed_time(request, _TIMESTAMP, from_seconds)
        return Claim(
            signatures=(signature,),
            messages=((b"v0:", sent, b":", request.body),),
            timestamp=timestamp,
        )

    def describe(self, request: Request) -> Description:
        """Read an event, or the challenge with which Slack proves a new URL."""
        outer = as_object(request.json)
        outer_type = as_text(outer.get("type"))
        if outer_type == "url_verification":
            challenge = as_text(outer.get("challenge"))
            return Description(event_type=outer_type, challenge=challenge)
        inner = as_object(outer.get("event"))
        return Description(
            event_id=as_id(outer.get("event_id")),
            event_type=as_text(inner.get("type")) or outer_type,
        )
