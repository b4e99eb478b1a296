"""
The numbers the controller obeys, in integer nanoseconds.

``settings`` builds these from what users write; the core knows no other form.
"""

from __future__ import annotations

from attrs import frozen

from gunicorn_admission.core.types import Mode, Priority

__all__ = ["MILLISECOND", "SECOND", "PartitionPolicy", "Policy"]

SECOND = 1_000_000_000
MILLISECOND = 1_000_000


@frozen(kw_only=True)
class PartitionPolicy:
    """
    What one traffic class (partition) is promised and denied.

    Attributes:
        name: Label in metrics and logs.
        priority: Priority of its requests unless the caller says otherwise.
        share: Slots held back for it: a fraction of the limit (0 < share < 1) or ``None``.
        cap: Most slots it may hold; ``None`` uses ``Policy.class_cap``.
        node_cap: Most slots of all workers of the node together; ``None`` for no bound.
        deadline_ns: How long the sender waits for an answer; ``None`` for no such rule.
        retries: Whether the sender retries a refusal; those are shed first.
        max_refusals: Refusals in a row that would cost the subscription (a sender that
            deletes a webhook after so many failures); before the run gets there, the next
            delivery counts as HIGH. ``None`` for no such rule.
        stream: Responses live long; time to first byte is the sample.
        release_on_first_byte: End the slot at the first byte rather than at the end.
        sampled: Whether its service times teach the limit.
    """

    name: str
    priority: Priority = Priority.DEFAULT
    share: float | None = None
    cap: int | None = None
    node_cap: int | None = None
    deadline_ns: int | None = None
    retries: bool = True
    max_refusals: int | None = None
    stream: bool = False
    release_on_first_byte: bool = False
    sampled: bool = True


@frozen(kw_only=True)
class Policy:
    """
    Bounds and times of one limiter.

    Attributes:
        max_limit: Hard bound N - R: threads that may run requests at once.
        min_limit: The adaptive limit never goes below this.
        max_queue: Most requests waiting for a slot.
        max_wait_ns: Longest wait while not overloaded.
        low_max_wait_ns: The same for LOW; 0 means that LOW never waits.
        target_ns: CoDel target; ``None`` follows the service time (a quarter of the
            median, within 5 to 50 ms).
        interval_ns: CoDel interval: how long a queue must stand to be called overload.
        class_cap: Most slots of a class without a cap of its own; ``None`` for no bound.
        stall_after_ns: Age at which a running request counts as stalled (at least; ten
            times the usual service time if that is more).
        retry_after_ns: Smallest and largest Retry-After before jitter.
        mode: See :class:`~gunicorn_admission.core.types.Mode`.
    """

    max_limit: int
    min_limit: int = 1
    max_queue: int = 64
    max_wait_ns: int = 100 * MILLISECOND
    low_max_wait_ns: int = 0
    target_ns: int | None = None
    interval_ns: int = 100 * MILLISECOND
    class_cap: int | None = None
    stall_after_ns: int = 5 * SECOND
    retry_after_ns: tuple[int, int] = (SECOND, 30 * SECOND)
    mode: Mode = Mode.ENFORCE
