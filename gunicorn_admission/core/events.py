"""What the controller reports when its condition changes; never one event a request."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Event", "EventKind"]


class EventKind(enum.Enum):
    """The transitions an observer can hear of."""

    OVERLOADED = "overloaded"
    RECOVERED = "recovered"
    STALLED = "stalled"  # a class hangs: its oldest request is far past its usual time
    RESUMED = "resumed"
    STARVED = "starved"  # too few threads are left that are not stuck
    REPLENISHED = "replenished"
    LIMIT_SET = "limit_set"
    MODE_SET = "mode_set"
    PAUSED = "paused"
    UNPAUSED = "unpaused"
    CLOSED = "closed"


class Event(NamedTuple):
    """
    One transition.

    Attributes:
        kind: What happened.
        at_ns: When, on the limiter's clock (monotonic nanoseconds).
        partition: The traffic class concerned, or ``None`` for the whole limiter.
        data: The numbers behind the decision (limit, inflight, age_seconds, ...).
    """

    kind: EventKind
    at_ns: int
    partition: str | None
    data: Mapping[str, float | int | str]
