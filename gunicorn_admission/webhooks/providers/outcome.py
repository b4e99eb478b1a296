"""What verifying a request gives: one of two answers, and the events in a genuine one."""

from __future__ import annotations

import enum

from attrs import field, frozen

__all__ = ["IdSource", "Item", "Outcome", "Reason", "Refusal", "Refused", "Verified"]


class Reason(enum.Enum):
    """Why a request was not believed; a closed list, whose values are metric labels."""

    MISSING_HEADER = "missing_header"
    DUPLICATE_HEADER = "duplicate_header"  # two values: which one the sender meant is unknown
    HEADER_TOO_LONG = "header_too_long"
    MALFORMED_HEADER = "malformed_header"  # not of the form that this sender uses
    UNSUPPORTED_ALGORITHM = "unsupported_algorithm"
    UNTRUSTED_KEY = "untrusted_key"  # a certificate from where this sender keeps none
    KEY_UNAVAILABLE = "key_unavailable"  # could not be fetched now: our trouble, not theirs
    URL_MISSING = "url_missing"  # the signature covers the public URL and none is configured
    URL_TOO_LONG = "url_too_long"
    BODY_NOT_SIGNED = "body_not_signed"  # nothing in the request vouches for this body
    MALFORMED_BODY = "malformed_body"  # the signature is in it, or of its fields, and not found
    NO_ACTIVE_SECRET = "no_active_secret"
    WRONG_SIGNATURE = "wrong_signature"
    TOO_OLD = "too_old"
    IN_THE_FUTURE = "in_the_future"


class IdSource(enum.Enum):
    """
    Where an event id was found.

    HEADER and BODY are the sender's own. DIGEST is ours, a hash of the bytes: the sender gave
    none, and a genuine event is not turned away for that. The same bytes give the same id.
    """

    HEADER = "header"
    BODY = "body"
    DIGEST = "digest"


@frozen(kw_only=True)
class Item:
    """
    One event to keep.

    Attributes:
        event_id: Original id, unique within the source; the key everywhere. At most 255
            printable characters.
        id_source: Where the id was found.
        event_type: What happened, in the sender's words, or ``None`` where it does not say.
        timestamp: When the sender says it happened or was sent, in seconds since the epoch.
        body: The bytes as they arrived; for one event of a batch its exact part of them.
    """

    event_id: str
    id_source: IdSource
    event_type: str | None
    timestamp: float | None
    body: bytes = field(repr=False)


@frozen(kw_only=True)
class Verified:
    """
    The request is genuine, and not older than this sender's rules allow.

    Attributes:
        event_id: Id of the event, or of the delivery that carries a batch.
        event_type: What happened, or ``None``: the sender does not say, or it is a batch.
        timestamp: Of the delivery, in seconds since the epoch, or ``None``. Its distance from
            now is the clock skew, where the sender stamps each attempt anew.
        secret: Position of the secret that matched, in the sequence that was given.
        items: What to keep: one event, each event of a batch, or nothing where it only asks
            for an answer.
        nonce: What the sender signed in place of the body (Mailgun, PayPal). It may be used
            once: the same nonce with other bytes is forged, however good the signature.
        challenge: Answer with this, as plain text, and keep nothing (Slack).
    """

    event_id: str
    event_type: str | None
    timestamp: float | None
    secret: int
    items: tuple[Item, ...]
    nonce: str | None = field(default=None, repr=False)
    challenge: str | None = field(default=None, repr=False)


@frozen(kw_only=True)
class Refused:
    """
    The request is not to be believed. Holds nothing that the request or a secret contained.

    Attributes:
        reason: Why, from the closed list.
        header: The header at fault, as the sender's documentation writes it.
        age: How old the signature is, in seconds, where that is the reason; negative is ahead.
    """

    reason: Reason
    header: str | None = None
    age: float | None = None

    @property
    def temporary(self) -> bool:
        """Whether the same request may be good later: answer 503 then, and not 401."""
        return self.reason is Reason.KEY_UNAVAILABLE


#: What :meth:`~gunicorn_admission.webhooks.providers.provider.Provider.verify` returns.
Outcome = Verified | Refused


class Refusal(Exception):
    """Carries a :class:`Refused` from where the fault is seen to ``verify``; never leaves it."""

    def __init__(self, reason: Reason, header: str | None = None, age: float | None = None) -> None:
        super().__init__(reason.value)
        self.refused = Refused(reason=reason, header=header, age=age)
