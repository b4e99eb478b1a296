"""GitLab: Standard Webhooks since it has signing tokens, before that a token in a header."""

from __future__ import annotations

import hashlib
import hmac
from datetime import date
from typing import ClassVar, Final

from attrs import frozen

from gunicorn_admission.webhooks.providers.facts import (
    DAY,
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
from gunicorn_admission.webhooks.providers.provider import Claim, Description, Provider, Request
from gunicorn_admission.webhooks.providers.standard_webhooks import only, read_claim, read_key

__all__ = ["GitLab"]

_SIGNATURE: Final = "webhook-signature"
_TOKEN: Final = "X-Gitlab-Token"
_SIGNING: Final = "whsec_"


@frozen(kw_only=True)
class _Claim(Claim):
    """A claim beside which, or instead of which, a token was sent."""

    token: bytes | None


@frozen(kw_only=True)
class GitLab(Provider):
    """
    Webhooks of GitLab projects and groups.

    A secret that begins with ``whsec_`` is a signing token. Any other is a secret token, which
    GitLab sends in the clear: it vouches for no byte of the body. Give both while a hook is
    changed from one to the other, then only the signing token.
    """

    in_base64: ClassVar[bool] = True

    facts: ClassVar[Facts] = Facts(
        name="gitlab",
        title="GitLab",
        docs="https://docs.gitlab.com/user/project/integrations/webhooks/",
        checked=date(2026, 11, 30),
        covers=Coverage.BODY,
        event_id=EventIdAt(header="webhook-id", signed=True),
        tolerance=Tolerance(max_age=5 * MINUTE, max_future=5 * MINUTE),
        deadline=10.0,
        retries=Retries(count=0, after="none that is documented; resend by the API"),
        disable=Disable(
            failures=4,
            rule="4 failures in a row (4xx, 5xx, timeout) disable it for 1 minute to 24 hours, "
            "40 until a test request succeeds",
        ),
        redelivery=Redelivery(
            listing="GET /projects/{id}/hooks/{hook_id}/events?status=server_failure",
            resend="POST /projects/{id}/hooks/{hook_id}/events/{event_id}/resend",
            window=7 * DAY,
        ),
        respects_retry_after=False,
        unsure=("retries", "redelivery", "respects_retry_after"),
        notes=(
            "With a secret token nothing is signed, neither body nor id.",
            "Without webhook-id the id is Idempotency-Key (since 17.4). X-Gitlab-Event-UUID is "
            "shared by hooks that set one another off, and is no id.",
            "4xx counts towards disabling: never answer so to an event that is genuine.",
            "Events can be resent 5 times a minute.",
        ),
    )

    def key(self, secret: str) -> bytes:
        """Return the HMAC key in a signing token, or the secret token itself."""
        return read_key(secret) if secret.startswith(_SIGNING) else secret.encode()

    def claim(self, request: Request) -> Claim:
        """Read the signature, the token, or both."""
        token = request.headers.find(_TOKEN)
        sent = token.encode() if token else None
        if request.headers.find(_SIGNATURE) is not None:
            claim = read_claim(request, "webhook")
            return _Claim(
                signatures=claim.signatures,
                messages=claim.messages,
                timestamp=claim.timestamp,
                token=sent,
            )
        if sent is None:
            raise Refusal(Reason.MISSING_HEADER, _SIGNATURE)
        return _Claim(signatures=(), messages=(), token=sent)

    def matches(self, secret: str, claim: Claim, now: float) -> bool:
        """Compare a signing token with signatures only, and a secret token with the token only."""
        signed = super().matches(secret, only(claim, b"v1,"), now)
        if secret.startswith(_SIGNING):
            return signed
        token = claim.token if isinstance(claim, _Claim) else None
        # Of digests, since comparing texts would tell the length of the secret.
        return token is not None and hmac.compare_digest(
            hashlib.sha256(token).digest(), hashlib.sha256(secret.encode()).digest()
        )

    def describe(self, request: Request) -> Description:
        """Read id and event name from the headers."""
        headers = request.headers
        return Description(
            event_id=headers.find_id("webhook-id") or headers.find_id("Idempotency-Key"),
            id_source=IdSource.HEADER,
            event_type=headers.hint("X-Gitlab-Event"),
        )
