"""Shopify: an HMAC of the body; eight failures in a row delete the subscription."""

from __future__ import annotations

from datetime import date
from typing import ClassVar

from attrs import frozen

from gunicorn_admission.webhooks.providers.facts import (
    HOUR,
    Coverage,
    Disable,
    EventIdAt,
    Facts,
    Retries,
)
from gunicorn_admission.webhooks.providers.headers import Headers
from gunicorn_admission.webhooks.providers.outcome import IdSource
from gunicorn_admission.webhooks.providers.payload import as_text
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request
from gunicorn_admission.webhooks.providers.timestamps import from_iso

__all__ = ["Shopify"]


@frozen(kw_only=True)
class Shopify(Provider):
    """
    Webhooks of Shopify over HTTPS.

    The secret is the app's client secret; a webhook made in the admin pages is signed with the
    key that is shown there, which is another.
    """

    in_base64: ClassVar[bool] = True

    facts: ClassVar[Facts] = Facts(
        name="shopify",
        title="Shopify",
        docs="https://shopify.dev/docs/apps/build/webhooks",
        checked=date(2026, 11, 30),
        covers=Coverage.BODY,
        event_id=EventIdAt(header="X-Shopify-Event-Id", signed=False),
        deadline=5.0,
        retries=Retries(count=8, span=4 * HOUR),
        disable=Disable(
            failures=8,
            rule="8 failures in a row delete a subscription made by the Admin API",
            deletes=True,
        ),
        notes=(
            "The connection must be accepted within 1 s.",
            "After a secret is revoked, it goes on signing for about half an hour; while two "
            "are valid, the older signs.",
            "Several subscriptions to a topic share X-Shopify-Event-Id, so the id kept is made "
            "of shop, topic and event id; without one X-Shopify-Webhook-Id stands in.",
            "There is no list of deliveries: compare state by updated_at, and look whether the "
            "subscription still exists.",
            "A retry has the original payload: X-Shopify-Triggered-At tells its age.",
        ),
    )

    def claim(self, request: Request) -> Claim:
        """Read ``X-Shopify-Hmac-Sha256``."""
        signature = request.headers.require("X-Shopify-Hmac-Sha256").encode()
        return Claim(signatures=(signature,), messages=((request.body,),))

    def describe(self, request: Request) -> Description:
        """Read all from the headers: no payload has an event id."""
        return Description(
            event_id=_event_id(request.headers),
            id_source=IdSource.HEADER,
            event_type=request.headers.hint("X-Shopify-Topic"),
            timestamp=from_iso(request.headers.hint("X-Shopify-Triggered-At")),
        )


def _event_id(headers: Headers) -> str | None:
    event_id = headers.find_id("X-Shopify-Event-Id")
    if event_id is None:
        return headers.find_id("X-Shopify-Webhook-Id")
    shop = headers.hint("X-Shopify-Shop-Domain") or ""
    topic = headers.hint("X-Shopify-Topic") or ""
    return as_text(f"{shop}/{topic}/{event_id}") or event_id
