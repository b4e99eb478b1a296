"""PayPal: RSA over a checksum of the body, with a certificate that must be fetched."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import ClassVar, Final

from attrs import field, frozen

from gunicorn_admission.webhooks.providers.asymmetric import (
    decode_base64,
    read_certificate,
    require_cryptography,
    rsa_matches,
)
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
from gunicorn_admission.webhooks.providers.outcome import Reason, Refusal
from gunicorn_admission.webhooks.providers.payload import as_id, as_object, as_text
from gunicorn_admission.webhooks.providers.paypal_certificates import (
    Certificates,
    is_trusted,
)
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request
from gunicorn_admission.webhooks.providers.secret import Secret
from gunicorn_admission.webhooks.providers.signatures import signed_time
from gunicorn_admission.webhooks.providers.timestamps import from_iso

__all__ = ["PayPal"]

_ID: Final = "PAYPAL-TRANSMISSION-ID"
_TIME: Final = "PAYPAL-TRANSMISSION-TIME"
_SIGNATURE: Final = "PAYPAL-TRANSMISSION-SIG"
_CERTIFICATE: Final = "PAYPAL-CERT-URL"
_ALGORITHM: Final = "PAYPAL-AUTH-ALGO"


@frozen(kw_only=True)
class _Claim(Claim):
    """A claim that is checked with the key of a certificate, in PEM."""

    certificate: bytes


@frozen(kw_only=True)
class PayPal(Provider):
    """
    Webhooks of PayPal's REST API.

    The secret is the webhook's id, which is part of what is signed. Needs the extra ``asym``.
    Whoever has seen one request can make another body with the same checksum. The answer's
    ``nonce`` is what stops that: it is good once.

    Args:
        certificates: Returns the certificate at a URL, in PEM, or ``None`` while it cannot be
            had; only asked for URLs where PayPal keeps them. The default fetches and keeps
            them.
    """

    decoy: ClassVar[str | None] = None

    facts: ClassVar[Facts] = Facts(
        name="paypal",
        title="PayPal",
        docs="https://developer.paypal.com/api/rest/webhooks/rest/",
        checked=date(2026, 11, 30),
        covers=Coverage.CHECKSUM,
        event_id=EventIdAt(body="id", signed=False),
        # Not said whether a retry is signed anew: as long as the retries go on, and a day.
        tolerance=Tolerance(max_age=4 * DAY, max_future=5 * MINUTE),
        retries=Retries(count=25, span=3 * DAY),
        redelivery=Redelivery(
            listing="GET /v1/notifications/webhooks-events?start_time={from}&end_time={to}",
            resend="POST /v1/notifications/webhooks-events/{event_id}/resend",
            window=30 * DAY,
        ),
        unsure=("redelivery",),
        notes=(
            "The body is covered by a CRC-32 only: see nonce.",
            "The transmission id belongs to an attempt; the event id is in the body.",
            "The window of 30 days is not confirmed. An event still pending is not resent.",
            "Mock events of the simulator cannot be verified by PayPal's own API.",
        ),
    )

    certificates: Callable[[str], bytes | None] = field(factory=Certificates)

    def check_secret(self, secret: Secret) -> None:
        """Check that signatures can be verified here; any text may be a webhook id."""
        require_cryptography(self.facts.title)

    def claim(self, request: Request) -> Claim:
        """Read the transmission headers, and get the certificate they name."""
        headers = request.headers
        signature = headers.require(_SIGNATURE).encode()
        nonce = headers.find_id(_ID)
        if nonce is None:
            raise Refusal(Reason.MISSING_HEADER, _ID)
        sent, timestamp = signed_time(request, _TIME, from_iso)
        if headers.require(_ALGORITHM) != "SHA256withRSA":
            raise Refusal(Reason.UNSUPPORTED_ALGORITHM, _ALGORITHM)
        url = headers.require(_CERTIFICATE)
        if not is_trusted(url):
            raise Refusal(Reason.UNTRUSTED_KEY, _CERTIFICATE)
        certificate = self.certificates(url)
        if certificate is None:
            raise Refusal(Reason.KEY_UNAVAILABLE, _CERTIFICATE)
        checksum = str(zlib.crc32(request.body))
        return _Claim(
            signatures=(signature,),
            messages=((nonce.encode(), sent, checksum.encode()),),
            timestamp=timestamp,
            certificate=certificate,
        )

    def matches(self, secret: str, claim: Claim, now: float) -> bool:
        """Check the signature for one webhook id, with a certificate that is valid now."""
        require_cryptography(self.facts.title)
        if not isinstance(claim, _Claim):
            return False
        certificate = read_certificate(claim.certificate)
        if certificate is None:
            raise Refusal(Reason.UNTRUSTED_KEY, _CERTIFICATE)
        when = datetime.fromtimestamp(now, UTC)
        if not certificate.not_valid_before_utc <= when <= certificate.not_valid_after_utc:
            raise Refusal(Reason.UNTRUSTED_KEY, _CERTIFICATE)
        nonce, text, checksum = claim.messages[0]
        message = b"|".join((nonce, text, secret.encode(), checksum))
        signature = decode_base64(claim.signatures[0])
        return signature is not None and rsa_matches(certificate, signature, message)

    def describe(self, request: Request) -> Description:
        """Read the event, and the transmission id as what may be used once."""
        event = as_object(request.json)
        return Description(
            event_id=as_id(event.get("id")),
            event_type=as_text(event.get("event_type")),
            nonce=request.headers.find_id(_ID),
        )
