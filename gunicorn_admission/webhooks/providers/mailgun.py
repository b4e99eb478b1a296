"""Mailgun: an HMAC of a timestamp and a token in the body, and of nothing else."""

from __future__ import annotations

from datetime import date
from typing import ClassVar, Final

from attrs import frozen

from gunicorn_admission.webhooks.providers.facts import (
    HOUR,
    MINUTE,
    Coverage,
    EventIdAt,
    Facts,
    Redelivery,
    Retries,
    Tolerance,
)
from gunicorn_admission.webhooks.providers.outcome import Reason, Refusal
from gunicorn_admission.webhooks.providers.payload import as_id, as_object, as_text
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request
from gunicorn_admission.webhooks.providers.timestamps import from_seconds

__all__ = ["Mailgun"]

# The body must be parsed before anything in it is believed; genuine ones have some kilobytes.
_LARGEST: Final = 4 * 1024 * 1024


@frozen(kw_only=True)
class Mailgun(Provider):
    """
    Webhooks of Mailgun, in JSON. The secret is the account's webhook signing key.

    Whoever has seen one request can put its signature on another body. The answer's ``nonce``
    is what stops that: it is good once.
    """

    facts: ClassVar[Facts] = Facts(
        name="mailgun",
        title="Mailgun",
        docs="https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/"
        "securing-webhooks",
        checked=date(2026, 11, 30),
        covers=Coverage.TOKEN,
        event_id=EventIdAt(body="event-data.id", signed=False),
        # Not said whether a retry is signed anew: as long as the retries go on, and an hour.
        tolerance=Tolerance(max_age=9 * HOUR, max_future=5 * MINUTE),
        retries=Retries(
            count=6,
            delays=(
                10 * MINUTE,
                15 * MINUTE,
                30 * MINUTE,
                1 * HOUR,
                2 * HOUR,
                4 * HOUR,
            ),
            span=28_500.0,
            after="any answer but 200 and 406; 406 ends the retries",
        ),
        redelivery=Redelivery(listing="GET /v3/{domain}/events"),
        unsure=("retries", "redelivery"),
        notes=(
            "The body is not signed: see nonce.",
            "A subaccount's event is also signed with the key of the primary account "
            "(parent-signature); either key will do.",
            "The old form posts (timestamp, token and signature as fields) are not taken.",
        ),
    )

    def claim(self, request: Request) -> Claim:
        """Read ``signature`` in the body."""
        if len(request.body) > _LARGEST:
            raise Refusal(Reason.MALFORMED_BODY)
        given = as_object(as_object(request.json).get("signature"))
        text, token = as_id(given.get("timestamp")), as_text(given.get("token"))
        timestamp = from_seconds(text) if text else None
        signatures = [as_text(given.get(name)) for name in ("signature", "parent-signature")]
        found = tuple(one.encode() for one in signatures if one)
        if text is None or timestamp is None or token is None or not found:
            raise Refusal(Reason.MALFORMED_BODY)
        return Claim(
            signatures=found,
            messages=((text.encode(), token.encode()),),
            timestamp=timestamp,
        )

    def describe(self, request: Request) -> Description:
        """Read the event, and the token as what may be used once."""
        payload = as_object(request.json)
        event = as_object(payload.get("event-data"))
        return Description(
            event_id=as_id(event.get("id")),
            event_type=as_text(event.get("event")),
            nonce=as_text(as_object(payload.get("signature")).get("token")),
        )
