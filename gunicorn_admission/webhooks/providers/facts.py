"""What is known of a sender, as data: deadline, retries, how it gives up, ids, redelivery."""

from __future__ import annotations

import enum
from datetime import date
from typing import Final

import attrs
from attrs import field, frozen

__all__ = [
    "DAY",
    "HOUR",
    "MINUTE",
    "Coverage",
    "Disable",
    "EventIdAt",
    "Facts",
    "Redelivery",
    "Retries",
    "Tolerance",
]

MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 86400.0


class Coverage(enum.Enum):
    """What the signature vouches for, from most to least."""

    BODY = "body"  # every byte, and the timestamp where there is one
    URL_AND_BODY = "url_and_body"
    URL_AND_FORM = "url_and_form"  # decoded fields, names and values run together
    CHECKSUM = "checksum"  # a CRC-32 of the body, which anyone can hit with other bytes
    TOKEN = "token"  # a random token beside the body, and nothing of the body


@frozen(kw_only=True)
class Tolerance:
    """
    How far a signed timestamp may be from now, in seconds; ``None`` is without bound.

    The two directions are bounded apart: one symmetric window doubles the life of a replay.
    Where an old delivery comes again byte for byte (Linear, 6 hours later), the window is
    longer than the last retry; the event id catches the replay then.
    """

    max_age: float | None = None
    max_future: float | None = None


@frozen(kw_only=True)
class Retries:
    """
    How often a failed delivery comes again.

    Attributes:
        count: Retries after the first attempt; ``None`` where nobody says.
        delays: Seconds before each retry, where they are published.
        span: Seconds from the first attempt to the last retry.
        after: Which answers are retried, in words.
        signed_anew: Whether each attempt has a timestamp and signature of its own; ``None``
            where there is none to renew, or nobody says.
    """

    count: int | None = None
    delays: tuple[float, ...] = ()
    span: float | None = None
    after: str = "any answer but 2xx, and timeouts"
    signed_anew: bool | None = None


@frozen(kw_only=True)
class Disable:
    """
    How a sender gives an endpoint up.

    Attributes:
        failures: Failed deliveries in a row that do it, where that is the rule.
        rule: The rule in words.
        deletes: Whether the subscription is gone then, and not just off.
    """

    failures: int | None = None
    rule: str
    deletes: bool = False


@frozen(kw_only=True)
class EventIdAt:
    """
    Where the original event id stands.

    Attributes:
        header: Name of the header.
        body: Path in the JSON body; ``[]`` stands for each element.
        signed: Whether the signature covers it. An id that is not covered can be changed by
            whoever replays a captured request.
    """

    header: str | None = None
    body: str | None = None
    signed: bool


@frozen(kw_only=True)
class Redelivery:
    """
    How to fetch what was missed.

    Attributes:
        listing: The call that lists deliveries or events.
        resend: The call that makes the sender send again; ``None`` means ingest the listing.
        window: Seconds back from now that the sender still knows.
    """

    listing: str
    resend: str | None = None
    window: float | None = None


def _names_of_facts(_: Facts, __: attrs.Attribute[tuple[str, ...]], value: tuple[str, ...]) -> None:
    unknown = set(value) - {fact.name for fact in attrs.fields(Facts)}
    if unknown:
        raise ValueError(f"unsure of {sorted(unknown)}, which are no facts")


@frozen(kw_only=True)
class Facts:
    """
    One sender's rules as its documentation gives them.

    Attributes:
        name: As in ``POST /hooks/<source>`` configuration: lower case, ``standard_webhooks``.
        title: As the sender writes itself.
        docs: The page to read first.
        checked: The day on which these facts were last compared with it.
        covers: What the signature vouches for.
        event_id: Where the id stands; ``None`` where the sender gives none.
        tolerance: The default window for a signed timestamp.
        deadline: Seconds until the sender takes a delivery as failed; ``None`` is not said.
        max_body: The largest body it sends, in bytes.
        retries: What happens to a failed delivery.
        disable: How it gives up; ``None`` where it never does, or nobody says.
        redelivery: How to fetch what was missed; ``None`` where only state can be compared.
        respects_retry_after: Whether it obeys a ``Retry-After`` header; ``None`` is not said.
        unsure: Names of the facts above that come from memory or from others and that no page
            of the sender's confirmed. Take them as a starting point and not as a promise.
        notes: What else a reader must know.

    Thread safety: immutable.
    """

    name: str
    title: str
    docs: str
    checked: date
    covers: Coverage
    event_id: EventIdAt | None
    tolerance: Tolerance = Tolerance()
    deadline: float | None = None
    max_body: int | None = None
    retries: Retries
    disable: Disable | None = None
    redelivery: Redelivery | None = None
    respects_retry_after: bool | None = None
    unsure: tuple[str, ...] = field(default=(), validator=_names_of_facts)
    notes: tuple[str, ...] = ()

    @property
    def retries_at_all(self) -> bool:
        """Whether a refused delivery comes again by itself."""
        return self.retries.count != 0
