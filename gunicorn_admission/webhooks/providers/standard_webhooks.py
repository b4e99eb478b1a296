"""Standard Webhooks, the scheme of Svix and of those who send through it or by its rules."""

from __future__ import annotations

import base64
import binascii
from datetime import date
from typing import ClassVar, Final

from attrs import evolve, frozen

from gunicorn_admission.webhooks.providers.asymmetric import (
    decode_base64,
    ed25519_key,
    ed25519_matches,
)
from gunicorn_admission.webhooks.providers.facts import (
    HOUR,
    MINUTE,
    Coverage,
    Disable,
    EventIdAt,
    Facts,
    Redelivery,
    Retries,
    Tolerance,
)
from gunicorn_admission.webhooks.providers.outcome import IdSource, Reason, Refusal
from gunicorn_admission.webhooks.providers.payload import as_object, as_text
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request
from gunicorn_admission.webhooks.providers.secret import Secret, bad_secret
from gunicorn_admission.webhooks.providers.signatures import signed_time
from gunicorn_admission.webhooks.providers.timestamps import from_seconds

__all__ = ["StandardWebhooks", "only", "read_claim", "read_key"]

_FAMILIES: Final = ("webhook", "svix")
_PUBLIC: Final = "whpk_"
# More would be no rotation, and each costs a check with every public key.
_MOST_SIGNATURES: Final = 10


def _decode(text: str) -> bytes:
    padded = text + "=" * (-len(text) % 4)  # secrets without padding are in use
    try:
        key = base64.b64decode(padded, validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if not key:
        raise bad_secret("whsec_ or whpk_ and base64", "copy it whole, as the sender shows it")
    return key


def read_key(secret: str) -> bytes:
    """
    Return the HMAC key in a ``whsec_`` secret; the prefix may be missing.

    Raises:
        ConfigError: What follows the prefix is empty or no base64.
    """
    return _decode(secret.removeprefix("whsec_"))


def read_claim(request: Request, family: str) -> Claim:
    """
    Read ``<family>-id``, ``-timestamp`` and ``-signature``.

    The signatures keep their version (``v1,...`` or ``v1a,...``); see :func:`only`.

    Raises:
        Refusal: One is missing or of another form.
    """
    names = tuple(f"{family}-{name}" for name in ("id", "timestamp", "signature"))
    event_id = request.headers.find_id(names[0])
    if event_id is None:
        raise Refusal(Reason.MISSING_HEADER, names[0])
    sent, timestamp = signed_time(request, names[1], from_seconds)
    signatures = request.headers.require(names[2]).split(" ")
    if len(signatures) > _MOST_SIGNATURES:
        raise Refusal(Reason.HEADER_TOO_LONG, names[2])
    if not any(signature.startswith(("v1,", "v1a,")) for signature in signatures):
        raise Refusal(Reason.MALFORMED_HEADER, names[2])
    return Claim(
        signatures=tuple(signature.encode() for signature in signatures),
        messages=((event_id.encode(), b".", sent, b".", request.body),),
        timestamp=timestamp,
    )


def only(claim: Claim, version: bytes) -> Claim:
    """Return a claim with the signatures of one version, without the version."""
    own = [one for one in claim.signatures if one.startswith(version)]
    return evolve(claim, signatures=tuple(one.removeprefix(version) for one in own))


def _family(request: Request) -> str | None:
    """Return which headers count: the id must be of the family whose signature is checked."""
    for family in _FAMILIES:
        if request.headers.find(f"{family}-signature") is not None:
            return family
    return None


@frozen(kw_only=True)
class StandardWebhooks(Provider):
    """
    Any sender by the Standard Webhooks specification: Svix, Clerk, Resend, OpenAI and others.

    A ``whsec_`` secret is a shared one; a ``whpk_`` secret is a public key, and needs the
    extra ``asym``. Headers are ``webhook-*``, or ``svix-*`` where those are missing.
    """

    in_base64: ClassVar[bool] = True

    facts: ClassVar[Facts] = Facts(
        name="standard_webhooks",
        title="Standard Webhooks",
        docs="https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/"
        "standard-webhooks.md",
        checked=date(2026, 11, 30),
        covers=Coverage.BODY,
        event_id=EventIdAt(header="webhook-id", signed=True),
        tolerance=Tolerance(max_age=5 * MINUTE, max_future=5 * MINUTE),
        deadline=15.0,
        retries=Retries(
            count=7,
            delays=(
                5.0,
                5 * MINUTE,
                30 * MINUTE,
                2 * HOUR,
                5 * HOUR,
                10 * HOUR,
                10 * HOUR,
            ),
            span=99_305.0,
            signed_anew=True,
        ),
        disable=Disable(rule="every attempt of 120 hours failed"),
        redelivery=Redelivery(
            listing="GET /api/v1/app/{app_id}/endpoint/{endpoint_id}/msg",
            resend="POST /api/v1/app/{app_id}/endpoint/{endpoint_id}/recover",
        ),
        respects_retry_after=True,
        unsure=("deadline",),
        notes=(
            "Deadline, retries, disabling and redelivery are those of Svix; each sender that "
            "hosts the scheme itself has its own. OpenAI retries for 72 hours.",
            "Svix takes Retry-After as one to two times its own delay, and adds a minute.",
            "410 disables the endpoint.",
            "webhook-id may differ from an id in the body (OpenAI): the header is the key.",
        ),
    )

    def key(self, secret: str) -> bytes:
        """Return the HMAC key, or the 32 bytes of a public key."""
        if secret.startswith(_PUBLIC):
            return _decode(secret.removeprefix(_PUBLIC))
        return read_key(secret)

    def check_secret(self, secret: Secret) -> None:
        """Check the form; of a public key also that it is one and can be used here."""
        key = self.key(secret.value)
        if secret.value.startswith(_PUBLIC):
            ed25519_key(key, self.facts.title)

    def claim(self, request: Request) -> Claim:
        """Read the three headers of whichever family is there."""
        family = _family(request)
        if family is None:
            raise Refusal(Reason.MISSING_HEADER, f"{_FAMILIES[0]}-signature")
        return read_claim(request, family)

    def matches(self, secret: str, claim: Claim, now: float) -> bool:
        """Try the signatures of the version that belongs to the kind of secret."""
        if not secret.startswith(_PUBLIC):
            return super().matches(secret, only(claim, b"v1,"), now)
        key = ed25519_key(self.key(secret), self.facts.title)
        message = b"".join(claim.messages[0])
        signatures = (decode_base64(one) for one in only(claim, b"v1a,").signatures)
        return any(one is not None and ed25519_matches(key, one, message) for one in signatures)

    def describe(self, request: Request) -> Description:
        """Read the id from the header and the type from the body."""
        family = _family(request)
        return Description(
            event_id=request.headers.find_id(f"{family}-id") if family else None,
            id_source=IdSource.HEADER,
            event_type=as_text(as_object(request.json).get("type")),
        )
