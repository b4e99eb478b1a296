"""What a page is: one thing that went wrong, and all that its reader must know."""

from __future__ import annotations

import enum
from typing import Any

import attrs
from attrs import frozen

__all__ = ["Boundary", "CeilingReached", "Condition", "Page", "Severity"]


class Boundary(enum.Enum):
    """Where it went wrong; each has its own owner and its own answer."""

    INTAKE = "intake"  # events cannot enter
    PUBLICATION = "publication"  # verified events do not reach their subscriptions
    CONSUMER = "consumer"  # one named consumer refuses, fails or lags


class Condition(enum.Enum):
    """What went wrong; a closed list, whose values are labels."""

    UNSTORED = "unstored"
    UNPUBLISHED = "unpublished"
    REFUSED = "refused"
    DEFERRED = "deferred"
    REVIEW = "review"
    OVER_SOFT = "over_soft"
    FAILING = "failing"
    DEAD = "dead"
    LAGGING = "lagging"

    @property
    def boundary(self) -> Boundary:
        """The boundary at which it is seen."""
        if self is Condition.UNSTORED:
            return Boundary.INTAKE
        if self is Condition.UNPUBLISHED:
            return Boundary.PUBLICATION
        return Boundary.CONSUMER


class Severity(enum.Enum):
    """How soon somebody must look."""

    CRITICAL = "critical"  # a promise to a customer is at risk: wake someone
    WARNING = "warning"  # in working hours
    INFO = "info"

    @classmethod
    def named(cls, name: str) -> Severity | None:
        """Return one by its name; ``None`` for ``"none"``: nobody is to be told."""
        return None if name == "none" else cls(name)


@frozen(kw_only=True)
class CeilingReached:
    """
    The ceiling that decided.

    Attributes:
        unit: What it counts.
        used: Spent and reserved, in that unit, when it decided.
        hard: The bound, or ``None`` where there is only a soft one.
        soft: The bound that only warns, where that is the one reached.
        window: In words: ``"day America/New_York"``.
        resets_at: When the window rolls, in microseconds since the epoch; ``None`` for a window
            that has no end of its own.
    """

    unit: str
    used: int
    hard: int | None
    soft: int | None = None
    window: str
    resets_at: int | None = None


@frozen(kw_only=True)
class Page:
    """
    One thing that went wrong.

    Attributes:
        key: Same key, same page: what comes again is counted and not sent. For a ceiling it is
            made of consumer, window and decision.
        condition: What went wrong.
        severity: How soon somebody must look.
        consumer: Whom it concerns, at the consumer's boundary.
        source: Of the event.
        event_id: The first event that met it; original id.
        ceiling: Where a ceiling decided.
        reason: More, in a few words and without any payload: ``"12 attempts, last ValueError"``.
        runbook: Where to read on.
        until: When it is over by itself, in microseconds since the epoch.

    Thread safety: immutable.
    """

    key: str = attrs.field(validator=attrs.validators.max_len(255))
    condition: Condition
    severity: Severity = Severity.WARNING
    consumer: str | None = None
    source: str | None = None
    event_id: str | None = None
    ceiling: CeilingReached | None = None
    reason: str | None = None
    runbook: str | None = None
    until: int | None = None

    def detail(self) -> dict[str, Any]:
        """Return what has no column of its own, for storage."""
        ceiling = None if self.ceiling is None else attrs.asdict(self.ceiling)
        return {"ceiling": ceiling, "reason": self.reason, "runbook": self.runbook}

    @classmethod
    def stored(cls, row: Any) -> Page:
        """Return the page that a row of the store holds."""
        ceiling = row.detail["ceiling"]
        return cls(
            key=row.key,
            condition=Condition(row.condition),
            severity=Severity(row.severity),
            consumer=row.consumer,
            source=row.source,
            event_id=row.event_id,
            ceiling=None if ceiling is None else CeilingReached(**ceiling),
            reason=row.detail["reason"],
            runbook=row.detail["runbook"],
            until=row.until,
        )
