"""Stripe: timestamp and body signed together, one signature for each secret of a rotation."""

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

__all__ = ["Stripe"]


@frozen(kw_only=True)
class Stripe(Provider):
    """Webhooks of Stripe, snapshot and thin events. The secret is the whole ``whsec_...``."""

    facts: ClassVar[Facts] = Facts(
        name="stripe",
        title="Stripe",
        docs="https://docs.stripe.com/webhooks",
        checked=date(2026, 11, 30),
        covers=Coverage.BODY,
        event_id=EventIdAt(body="id", signed=True),
        tolerance=Tolerance(max_age=5 * MINUTE, max_future=5 * MINUTE),
        retries=Retries(span=3 * DAY, signed_anew=True),
        redelivery=Redelivery(
            listing="GET /v1/events?delivery_success=false&ending_before={event_id}",
            window=30 * DAY,
        ),
        unsure=("disable",),
        notes=(
            "The deadline is not published.",
            "In a sandbox there are 3 retries over a few hours.",
            "An endpoint that is disabled or deleted loses the retries that were due.",
            "delivery_success=false means that some endpoint failed, not which.",
            "A retry may differ in pending_webhooks: same id, other bytes.",
        ),
    )

    def claim(self, request: Request) -> Claim:
        """Read ``Stripe-Signature``; only ``v1`` counts, ``v0`` is for tests of Stripe's."""
        return timed_list(
            request,
            "Stripe-Signature",
            time="t",
            signature="v1",
            between=",",
            behind_time=b".",
        )

    def describe(self, request: Request) -> Description:
        """Read id and type from the body."""
        event = as_object(request.json)
        return Description(event_id=as_id(event.get("id")), event_type=as_text(event.get("type")))
