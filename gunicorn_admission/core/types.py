"""The vocabulary of the limiter: priorities, outcomes, reasons, modes, ticket states."""

from __future__ import annotations

import enum

__all__ = ["Mode", "Outcome", "Priority", "Reason", "State"]


class Priority(enum.IntEnum):
    """
    How much a request matters when not all can be served; a lower number goes first.

    HIGH queues and is shed last. DEFAULT queues briefly and is shed once overloaded.
    LOW runs in spare slots only and does not wait unless ``low_max_wait`` allows it.
    """

    HIGH = 0
    DEFAULT = 1
    LOW = 2


class Outcome(enum.Enum):
    """
    What a finished request says about capacity.

    SUCCESS is a latency sample. IGNORE says nothing (client error, client gone). DROP
    is a sign of overload further down: a timeout, an exhausted pool, a 503 from below.
    """

    SUCCESS = "success"
    IGNORE = "ignore"
    DROP = "drop"


class Reason(enum.Enum):
    """Why a request was refused; the value is the metric label and header text."""

    OVERLOADED = "overloaded"  # no free slot, and its priority may not wait now
    PREDICTED_WAIT = "predicted_wait"  # the queue ahead would take longer than allowed
    QUEUE_FULL = "queue_full"
    EVICTED = "evicted"  # gave its place to a higher priority
    EXPIRED = "expired"  # waited as long as it may
    DEADLINE = "deadline"  # could not finish before the sender gives up
    ABANDONED = "abandoned"  # the client left while it waited; nobody sees the answer
    STALLED = "stalled"  # its class hangs; only a probe now and then is let through
    PAUSED = "paused"
    STOPPING = "stopping"  # the worker is shutting down


class Mode(enum.Enum):
    """``enforce`` refuses; ``monitor`` only counts what it would refuse; ``off`` does nothing."""

    ENFORCE = "enforce"
    MONITOR = "monitor"
    OFF = "off"


class State(enum.Enum):
    """Life of a ticket. It leaves WAITING once, under the lock, by whoever decides."""

    NEW = "new"
    WAITING = "waiting"
    GRANTED = "granted"
    SHED = "shed"  # refused: on arrival, by expiry, eviction or closing
    ENDED = "ended"
