"""SendGrid's event webhook: ECDSA over timestamp and body, and batches full of duplicates."""

from __future__ import annotations

from datetime import date
from typing import ClassVar, Final

from attrs import frozen

from gunicorn_admission.webhooks.providers.asymmetric import (
    decode_base64,
    ecdsa_key,
    ecdsa_matches,
)
from gunicorn_admission.webhooks.providers.batch import Entry, read_batch
from gunicorn_admission.webhooks.providers.facts import (
    DAY,
    HOUR,
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
from gunicorn_admission.webhooks.providers.secret import Secret
from gunicorn_admission.webhooks.providers.signatures import signed_time
from gunicorn_admission.webhooks.providers.timestamps import from_seconds

__all__ = ["SendGrid"]

_SIGNATURE: Final = "X-Twilio-Email-Event-Webhook-Signature"
_TIMESTAMP: Final = "X-Twilio-Email-Event-Webhook-Timestamp"


@frozen(kw_only=True)
class SendGrid(Provider):
    """
    The event webhook of Twilio SendGrid.

    The secret is the verification key, which is public. Needs the extra ``asym``.
    """

    decoy: ClassVar[str | None] = None

    facts: ClassVar[Facts] = Facts(
        name="sendgrid",
        title="SendGrid",
        docs="https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/"
        "getting-started-event-webhook-security-features",
        checked=date(2026, 11, 30),
        covers=Coverage.BODY,
        event_id=EventIdAt(body="[].sg_event_id", signed=True),
        # Not said whether a retry is signed anew: as long as the retries go on, and an hour.
        tolerance=Tolerance(max_age=DAY + HOUR, max_future=5 * MINUTE),
        deadline=10.0,
        retries=Retries(span=DAY),
        unsure=("deadline", "respects_retry_after"),
        notes=(
            "The same event comes often: up to 46 times over 29 hours were seen "
            "(sendgrid/docs#2933). Keep ids for 30 days.",
            "The body ends with a line end that belongs to what is signed.",
        ),
    )

    def check_secret(self, secret: Secret) -> None:
        """Check that it is an ECDSA P-256 public key and that it can be used here."""
        ecdsa_key(secret.value, self.facts.title)

    def claim(self, request: Request) -> Claim:
        """Read signature and timestamp."""
        signature = request.headers.require(_SIGNATURE).encode()
        sent, timestamp = signed_time(request, _TIMESTAMP, from_seconds)
        return Claim(
            signatures=(signature,),
            messages=((sent, request.body),),
            timestamp=timestamp,
        )

    def matches(self, secret: str, claim: Claim, now: float) -> bool:
        """Check the one signature with a public key."""
        key = ecdsa_key(secret, self.facts.title)
        signature = decode_base64(claim.signatures[0])
        return signature is not None and ecdsa_matches(key, signature, b"".join(claim.messages[0]))

    def describe(self, request: Request) -> Description:
        """Split the events of a batch."""
        return Description(items=read_batch(request.body, _read))


def _read(event: Json) -> Entry:
    fields = as_object(event)
    return Entry(
        as_id(fields.get("sg_event_id")),
        as_text(fields.get("event")),
        as_number(fields.get("timestamp")),
    )
