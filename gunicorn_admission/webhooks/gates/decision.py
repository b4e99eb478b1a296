"""What a gate answers, with all that a page about it must name."""

from __future__ import annotations

import enum
from typing import Any

from attrs import asdict, frozen

__all__ = ["Decision", "Kind", "Reason", "Standing"]


class Kind(enum.Enum):
    """What to do with the event; a closed list, whose values are metric labels."""

    ADMITTED = "admitted"  # run the handler; the only one that is an attempt
    DEDUPLICATED = "deduplicated"  # its effect is done: acknowledge, do nothing
    IN_PROGRESS = "in_progress"  # another attempt holds the lease: look again at ``until``
    REFUSED = "refused"
    DEFERRED = "deferred"  # look again at ``until``
    REVIEW = "review"  # an operator decides


class Reason(enum.Enum):
    """Why an event was not admitted; a closed list."""

    CEILING_REACHED = "ceiling_reached"
    EXCEEDS_CEILING = "exceeds_ceiling"  # its cost alone is more than the ceiling
    RETENTION = "retention"  # the window resets after the event is thrown away
    REJECTED = "rejected"  # by an operator


@frozen(kw_only=True)
class Standing:
    """
    A ceiling and what is used of it.

    Attributes:
        ceiling: As people write it: ``500 requests per day America/New_York``.
        unit: What is counted.
        span: ``day America/New_York``, ``rolling 1h``, ``total``.
        zone: Time zone of a calendar window, or ``None``.
        window: Name of the window: the local time it begins at. One page for each.
        starts_at: When it began, in microseconds since the epoch.
        resets_at: When room comes back, or ``None``: never.
        hard: Bound that is not passed, or ``None``.
        soft: Bound that is told of, or ``None``.
        reserved: Held for attempts under way or to come.
        settled: Spent.
        cost: Of the event at hand.
    """

    ceiling: str
    unit: str
    span: str
    zone: str | None
    window: str
    starts_at: int
    resets_at: int | None
    hard: int | None
    soft: int | None
    reserved: int
    settled: int
    cost: int = 0

    @property
    def used(self) -> int:
        """Reserved and settled together, in units."""
        return self.reserved + self.settled

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {**asdict(self), "used": self.used}


@frozen(kw_only=True)
class Decision:
    """
    The gate's answer about one event at one consumer.

    Attributes:
        kind: What to do.
        consumer: Whose gate it is.
        source: Where the event came from.
        event_id: The sender's id of it.
        is_new: ``False`` is an answer that was given before: no page, no count, no attempt.
        attempt: Number of the attempt, from 1, where it was admitted; else of those so far.
        reason: Why not, or ``None``.
        until: When to look again, in microseconds since the epoch, or ``None``.
        standing: The ceiling that stood in the way (of several the one that resets last).
        over_soft: Soft ceilings that are crossed while it was admitted.
        crossed_soft: Those of them that this event was the first to cross in their window.
        beyond: An operator let it pass a ceiling that has no room.
    """

    kind: Kind
    consumer: str
    source: str
    event_id: str
    is_new: bool = True
    attempt: int = 0
    reason: Reason | None = None
    until: int | None = None
    standing: Standing | None = None
    over_soft: tuple[Standing, ...] = ()
    crossed_soft: tuple[Standing, ...] = ()
    beyond: bool = False

    @property
    def ceiling(self) -> str | None:
        """The ceiling in the way, in words."""
        return None if self.standing is None else self.standing.ceiling

    @property
    def unit(self) -> str | None:
        """What it counts."""
        return None if self.standing is None else self.standing.unit

    @property
    def used(self) -> int | None:
        """What of it is reserved and settled."""
        return None if self.standing is None else self.standing.used

    @property
    def hard(self) -> int | None:
        """Where it ends."""
        return None if self.standing is None else self.standing.hard

    @property
    def window(self) -> str | None:
        """Name of its window; with consumer and kind the key of a page."""
        return None if self.standing is None else self.standing.window

    @property
    def resets_at(self) -> int | None:
        """When room comes back, in microseconds since the epoch."""
        return None if self.standing is None else self.standing.resets_at
