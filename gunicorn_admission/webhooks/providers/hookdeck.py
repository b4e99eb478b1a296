"""Hookdeck's Event Gateway: an HMAC of the forwarded body, beside the original headers."""

from __future__ import annotations

from datetime import date
from typing import ClassVar

from attrs import evolve, frozen

from gunicorn_admission.webhooks.providers.facts import (
    MINUTE,
    Coverage,
    EventIdAt,
    Facts,
    Redelivery,
    Retries,
)
from gunicorn_admission.webhooks.providers.outcome import IdSource
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request

__all__ = ["Hookdeck"]


@frozen(kw_only=True)
class Hookdeck(Provider):
    """
    Events that Hookdeck forwards. The secret is the project's signing secret.

    Args:
        origin: The sender behind it. Ids, types and batches are then read as from that sender,
            so that what it sends twice is one event, also where Hookdeck made two of it. Its
            own signature is not checked: Hookdeck's source does that.
        header_prefix: Where the project has changed it.
    """

    in_base64: ClassVar[bool] = True

    facts: ClassVar[Facts] = Facts(
        name="hookdeck",
        title="Hookdeck",
        docs="https://hookdeck.com/docs/authentication",
        checked=date(2026, 11, 30),
        covers=Coverage.BODY,
        event_id=EventIdAt(header="X-Hookdeck-EventID", signed=False),
        deadline=1 * MINUTE,
        retries=Retries(after="what the connection's retry rule says; 50 attempts at most"),
        redelivery=Redelivery(
            listing="GET /events?status=FAILED", resend="POST /events/{event_id}/retry"
        ),
        respects_retry_after=True,
        unsure=("deadline", "redelivery", "respects_retry_after"),
        notes=(
            "A secret that is rolled with an expiry signs too, in X-Hookdeck-Signature-2.",
            "The original headers are kept. Of bodies an old page says that integers above 58 "
            "bits become texts, which would break the sender's own signature.",
        ),
    )

    origin: Provider | None = None
    header_prefix: str = "X-Hookdeck"

    def claim(self, request: Request) -> Claim:
        """Read ``X-Hookdeck-Signature`` and, during a rotation, ``-Signature-2``."""
        first = request.headers.require(f"{self.header_prefix}-Signature")
        second = request.headers.find(f"{self.header_prefix}-Signature-2")
        return Claim(
            signatures=tuple(one.encode() for one in (first, second) if one),
            messages=((request.body,),),
        )

    def describe(self, request: Request) -> Description:
        """Read as the sender behind it, or the id of Hookdeck's event."""
        own_id = request.headers.find_id(f"{self.header_prefix}-EventID")
        if self.origin is None:
            return Description(event_id=own_id, id_source=IdSource.HEADER)
        described = self.origin.describe(request)
        if described.event_id is None and described.items is None:
            return evolve(described, event_id=own_id, id_source=IdSource.HEADER)
        return described
