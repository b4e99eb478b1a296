"""Paddle: timestamp and body signed together, several signatures during a rotation."""

from __future__ import annotations

from datetime import date
from typing import ClassVar

from attrs import frozen

from gunicorn_admission.webhooks.providers.facts import (
    DAY,
    MINUTE,
    Coverage,
    EventIdAt,
    Facts,
    Redelivery,
    Retries,
    Tolerance,
)
from gunicorn_admission.webhooks.providers.payload import as_id, as_object, as_text
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request
from gunicorn_admission.webhooks.providers.signatures import timed_list

__all__ = ["Paddle"]


@frozen(kw_only=True)
class Paddle(Provider):
    """Notifications of Paddle Billing. The secret is the destination's ``pdl_ntf_...``."""

    facts: ClassVar[Facts] = Facts(
        name="paddle",
        title="Paddle",
        docs="https://developer.paddle.com/webhooks/about/respond-to-webhooks",
        checked=date(2026, 11, 30),
        covers=Coverage.BODY,
        event_id=EventIdAt(body="event_id", signed=True),
        # Paddle's own libraries default to 5 s, less than many a queue in front of us.
        tolerance=Tolerance(max_age=5 * MINUTE, max_future=5 * MINUTE),
        deadline=5.0,
        retries=Retries(
            count=60, span=3 * DAY, after="any answer but 200, and timeouts", signed_anew=True
        ),
        redelivery=Redelivery(
            listing="GET /notifications?status=failed",
            resend="POST /notifications/{notification_id}/replay",
            window=90 * DAY,
        ),
        respects_retry_after=False,
        unsure=("retries", "respects_retry_after"),
        notes=(
            "Count and span of the retries are documented, signing anew is an inference from "
            "the 5 s of its libraries.",
            "Sandbox accounts retry less.",
            "A replay is a new notification_id with the same event_id, and cannot be replayed.",
        ),
    )

    def claim(self, request: Request) -> Claim:
        """Read ``Paddle-Signature``."""
        return timed_list(
            request,
            "Paddle-Signature",
            time="ts",
            signature="h1",
            between=";",
            behind_time=b":",
        )

    def describe(self, request: Request) -> Description:
        """Read id and type from the body."""
        event = as_object(request.json)
        return Description(
            event_id=as_id(event.get("event_id")), event_type=as_text(event.get("event_type"))
        )
