"""
How every sender is verified: the order of the steps, which no sender may change.

A sender gives two things: :meth:`Provider.claim`, what a request says about its own signature,
and :meth:`Provider.describe`, what a genuine request holds. Everything between is here, once:
all active secrets, in constant time, and freshness only after the signature.
"""

from __future__ import annotations

import base64
import hmac
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final, Literal

import attrs
from attrs import frozen

from gunicorn_admission.webhooks.providers.facts import Facts, Tolerance
from gunicorn_admission.webhooks.providers.headers import Headers, HeaderSource
from gunicorn_admission.webhooks.providers.outcome import (
    IdSource,
    Item,
    Outcome,
    Reason,
    Refusal,
    Verified,
)
from gunicorn_admission.webhooks.providers.payload import Json, digest, read_json
from gunicorn_admission.webhooks.providers.secret import Secret
from gunicorn_admission.webhooks.providers.timestamps import check_fresh

__all__ = ["Claim", "Description", "Provider", "Request"]

_LONGEST_URL: Final = 8192


class Request:
    """
    One request as it arrived.

    Attributes:
        body: The raw bytes; never decoded before the signature was checked.
        headers: See :class:`~gunicorn_admission.webhooks.providers.headers.Headers`.
    """

    __slots__ = ("body", "headers", "_url", "_json", "_is_read")

    def __init__(self, body: bytes, headers: Headers, url: str) -> None:
        self.body = body
        self.headers = headers
        self._url = url
        self._json: Json | None = None
        self._is_read = False

    @property
    def json(self) -> Json | None:
        """The JSON value in the body, or ``None``."""
        if not self._is_read:
            self._json, self._is_read = read_json(self.body), True
        return self._json

    def public_url(self) -> str:
        """
        Return the URL that the sender signed.

        Raises:
            Refusal: There is none, or it is absurdly long.
        """
        if not self._url:
            raise Refusal(Reason.URL_MISSING)
        if len(self._url) > _LONGEST_URL:
            raise Refusal(Reason.URL_TOO_LONG)
        return self._url


@frozen(kw_only=True)
class Claim:
    """
    What a request says about its own signature, before any of it is believed.

    Attributes:
        signatures: Signatures in the sender's text form; one good one is enough.
        messages: What may have been signed, usually one thing; each in parts, so that a large
            body is not copied.
        timestamp: When it was signed, in seconds since the epoch, where that is signed too.
        algorithm: Of the HMAC.
    """

    signatures: tuple[bytes, ...]
    messages: tuple[tuple[bytes, ...], ...]
    timestamp: float | None = None
    algorithm: Literal["sha256", "sha1"] = "sha256"


@frozen(kw_only=True)
class Description:
    """
    What a genuine request holds. Fields as in
    :class:`~gunicorn_admission.webhooks.providers.outcome.Verified`.

    Attributes:
        event_id: ``None`` has the bytes hashed in its place.
        items: The events of a batch; ``None`` says that the request is one event.
    """

    event_id: str | None = None
    id_source: IdSource = IdSource.BODY
    event_type: str | None = None
    timestamp: float | None = None
    items: tuple[Item, ...] | None = None
    nonce: str | None = None
    challenge: str | None = None


@frozen(kw_only=True)
class Provider(ABC):
    """
    A sender of webhooks, and how a request is shown to be from it.

    Args:
        tolerance: Window for a signed timestamp, where the sender's default does not fit.

    Thread safety: immutable; ``verify`` may run in many threads.
    """

    #: What is known of the sender.
    facts: ClassVar[Facts]

    #: Whether a signature is written in base64; else in lower-case hex.
    in_base64: ClassVar[bool] = False

    #: With no active secret the work is done for nothing with this one, so that the time of an
    #: answer does not tell whether a source has secrets. ``None`` where keys are public.
    decoy: ClassVar[str | None] = "whsec_ZGVjb3lkZWNveWRlY295ZGVjb3lkZWNveQ=="

    tolerance: Tolerance = attrs.field()

    @tolerance.default
    def _default_tolerance(self) -> Tolerance:
        return self.facts.tolerance

    @abstractmethod
    def claim(self, request: Request) -> Claim:
        """
        Read what the request says about its signature.

        Raises:
            Refusal: It says nothing that this sender would say.
        """

    @abstractmethod
    def describe(self, request: Request) -> Description:
        """Read what a genuine request holds. Must not fail on any bytes."""

    def key(self, secret: str) -> bytes:
        """
        Return the key that a secret stands for.

        Raises:
            ConfigError: It is not of the form that this sender gives out.
        """
        return secret.encode()

    def check_secret(self, secret: Secret) -> None:
        """
        Check at start that a secret can work, and that what it needs is installed.

        Raises:
            ConfigError: It cannot; the message does not show it.
        """
        self.key(secret.value)

    def matches(self, secret: str, claim: Claim, now: float) -> bool:
        """Whether one of the signatures was made with that secret; in constant time."""
        key = self.key(secret)
        found = False
        for message in claim.messages:
            mac = hmac.new(key, digestmod=claim.algorithm)
            for part in message:
                mac.update(part)
            made = base64.b64encode(mac.digest()) if self.in_base64 else mac.hexdigest().encode()
            for signature in claim.signatures:
                found |= hmac.compare_digest(made, signature)
        return found

    def verify(
        self, body: bytes, headers: HeaderSource, url: str, secrets: Sequence[Secret], now: float
    ) -> Outcome:
        """
        Return whether a request is from this sender, and which events it holds.

        Args:
            body: The raw body, as received. Bound its size before.
            headers: All request headers.
            url: Public URL as configured at the sender, with the query string of the request;
                never made from ``Host``, which a proxy or an attacker chooses. Only some
                senders sign it (``facts.covers``).
            secrets: All secrets of the source. Each active one is tried, and the same work is
                done when the first matches as when none does.
            now: Seconds since the epoch.

        Raises:
            ConfigError: A secret is not of this sender's form, or an extra is not installed;
                :meth:`check_secret` says so at start. No request can cause it.
        """
        try:
            request = Request(body, Headers(headers), url)
            claim = self.claim(request)
            position = self._find_secret(claim, secrets, now)
            description = self.describe(request)
            timestamp = claim.timestamp
            if timestamp is None:
                timestamp = description.timestamp
            if timestamp is not None:
                check_fresh(timestamp, now, self.tolerance)
        except Refusal as refusal:
            return refusal.refused
        return _verified(body, description, timestamp, position)

    def _find_secret(self, claim: Claim, secrets: Sequence[Secret], now: float) -> int:
        found: int | None = None
        any_active = False
        for position, secret in enumerate(secrets):
            if secret.is_active(now):
                any_active = True
                if self.matches(secret.value, claim, now) and found is None:
                    found = position
        if not any_active:
            if self.decoy is not None:
                self.matches(self.decoy, claim, now)
            raise Refusal(Reason.NO_ACTIVE_SECRET)
        if found is None:
            raise Refusal(Reason.WRONG_SIGNATURE)
        return found


def _verified(
    body: bytes, description: Description, timestamp: float | None, position: int
) -> Verified:
    event_id, source = description.event_id, description.id_source
    if event_id is None:
        event_id, source = digest(body), IdSource.DIGEST
    items = description.items
    if description.challenge is not None:
        items = ()
    elif items is None:
        items = (
            Item(
                event_id=event_id,
                id_source=source,
                event_type=description.event_type,
                timestamp=timestamp,
                body=body,
            ),
        )
    return Verified(
        event_id=event_id,
        event_type=description.event_type,
        timestamp=timestamp,
        secret=position,
        items=items,
        nonce=description.nonce,
        challenge=description.challenge,
    )
