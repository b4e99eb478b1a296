"""Linear: an HMAC of a body that holds its own timestamp, sent again unchanged for hours."""

from __future__ import annotations

from datetime import date
from typing import ClassVar

from attrs import frozen

from gunicorn_admission.webhooks.providers.facts import (
    HOUR,
    MINUTE,
    Coverage,
    Disable,
    EventIdAt,
    Facts,
    Retries,
    Tolerance,
)
from gunicorn_admission.webhooks.providers.outcome import IdSource
from gunicorn_admission.webhooks.providers.payload import as_number, as_object, as_text
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request

__all__ = ["Linear"]


@frozen(kw_only=True)
class Linear(Provider):
    """Webhooks of Linear. The secret is the webhook's."""

    facts: ClassVar[Facts] = Facts(
        name="linear",
        title="Linear",
        docs="https://linear.app/developers/webhooks",
        checked=date(2026, 11, 30),
        covers=Coverage.BODY,
        event_id=EventIdAt(header="Linear-Delivery", signed=False),
        # Its documentation advises one minute, its retries come byte for byte up to 7 h 1 min
        # later (vercel/eve#1570): one minute would lose each event that had to be retried.
        tolerance=Tolerance(max_age=8 * HOUR, max_future=5 * MINUTE),
        deadline=5.0,
        retries=Retries(
            count=3,
            delays=(1 * MINUTE, 1 * HOUR, 6 * HOUR),
            span=25_260.0,
            after="any answer but 200, and timeouts",
            signed_anew=False,
        ),
        disable=Disable(rule="may be disabled while it does not answer"),
        respects_retry_after=False,
        unsure=("disable", "respects_retry_after"),
        notes=(
            "Only 200 counts as success, no other 2xx.",
            "Whether the three delays follow one another or all count from the first attempt "
            "is not said; the span is of the longer reading.",
            "There is no list of deliveries: compare state by updatedAt.",
        ),
    )

    def claim(self, request: Request) -> Claim:
        """Read ``Linear-Signature``."""
        signature = request.headers.require("Linear-Signature").encode()
        return Claim(signatures=(signature,), messages=((request.body,),))

    def describe(self, request: Request) -> Description:
        """Read the id from the header, and from the body what happened and when it was sent."""
        payload = as_object(request.json)
        kind, action = as_text(payload.get("type")), as_text(payload.get("action"))
        milliseconds = as_number(payload.get("webhookTimestamp"))
        return Description(
            event_id=request.headers.find_id("Linear-Delivery"),
            id_source=IdSource.HEADER,
            event_type=as_text(f"{kind}.{action}") if kind and action else kind,
            timestamp=None if milliseconds is None else milliseconds / 1000,
        )
