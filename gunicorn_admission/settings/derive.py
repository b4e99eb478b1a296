"""
From settings and a number of threads to the numbers that the core obeys.

Where a request that waits holds a thread (the gate), limit + waiting + spare must fit
into the threads: with limit = threads nothing is left to refuse with, so nothing is ever
refused. Where waiting costs no thread (the executor), the limit alone must fit.
"""

from __future__ import annotations

from attrs import frozen

from gunicorn_admission.core.policy import PartitionPolicy, Policy
from gunicorn_admission.core.types import Mode
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import to_ns
from gunicorn_admission.settings.partitions import combine
from gunicorn_admission.settings.schema import DEFAULT_MAX_WAIT, Settings

__all__ = ["Resolved", "derive"]

_ONE_THREAD = (
    "one thread: a request that waits would hold it, and none is left to refuse with; "
    "use the gthread worker with --threads 4 or more"
)


@frozen(kw_only=True)
class Resolved:
    """
    Settings worked out for one worker.

    Attributes:
        policy: For the controller. Its mode is OFF where ``off_reason`` is set.
        partitions: Every class that rules, shares or caps name; others appear with traffic.
        algorithm: ``adaptive``, ``gradient2``, ``vegas``, ``aimd`` or ``fixed``.
        fixed_limit: The limit to hold where the algorithm is ``fixed``, else ``None``.
        threads: What the sizes were derived from.
        spare: Threads kept free for probes and refusals.
        off_reason: Why admission cannot work here, in words for the log; ``None`` if it can.
    """

    policy: Policy
    partitions: tuple[PartitionPolicy, ...]
    algorithm: str
    fixed_limit: int | None
    threads: int
    spare: int
    off_reason: str | None = None

    @property
    def limit(self) -> str | int:
        """As the setting says it: the algorithm, or the number that is held."""
        return self.algorithm if self.fixed_limit is None else self.fixed_limit


def derive(settings: Settings, threads: int, waiting_holds_thread: bool) -> Resolved:
    """
    Return the numbers for a worker; see :meth:`Settings.derive`.

    Raises:
        ConfigError: A size set by the user does not fit the threads; it shows the sum
            and the largest value that fits.

    Thread safety: pure.
    """
    if threads < 1:
        raise ConfigError("threads", threads, "an integer from 1", "gunicorn --threads 4")
    alone = waiting_holds_thread and threads == 1
    if alone:
        limit, queue, spare = 1, 0, 0
    elif waiting_holds_thread:
        limit, queue, spare = _gate(settings, threads)
    else:
        limit, queue, spare = _executor(settings, threads)
    if settings.node_limit is not None:
        limit = min(limit, settings.node_limit)  # one worker never has more than all may
    floor = settings.min_limit or -(-limit // 8)
    if floor > limit:
        if not alone:
            raise ConfigError(
                "min_limit", floor, f"at most {limit}, the largest limit with {threads} threads"
                + (f" and node_limit = {settings.node_limit}" if settings.node_limit else ""),
                "leave it out, or raise the threads",
            )  # fmt: skip
        floor = limit
    fixed = settings.limit if isinstance(settings.limit, int) else None
    wait = DEFAULT_MAX_WAIT if settings.max_wait is None else settings.max_wait
    low, high = settings.retry_after
    return Resolved(
        policy=Policy(
            max_limit=limit,
            min_limit=floor,
            max_queue=queue,
            max_wait_ns=to_ns(wait),
            low_max_wait_ns=to_ns(min(settings.low_max_wait, wait)),
            target_ns=None if settings.target_delay is None else to_ns(settings.target_delay),
            interval_ns=to_ns(settings.interval),
            class_cap=_class_cap(settings, limit),
            stall_after_ns=to_ns(settings.stall_after),
            retry_after_ns=(to_ns(low), to_ns(high)),
            mode=Mode.OFF if alone else Mode(settings.mode),
        ),
        partitions=tuple(_classes(settings).values()),
        algorithm="fixed" if fixed else str(settings.limit),
        fixed_limit=fixed,
        threads=threads,
        spare=spare,
        off_reason=_ONE_THREAD if alone else None,
    )


def _classes(settings: Settings) -> dict[str, PartitionPolicy]:
    return combine(settings.rules, settings.share, settings.caps, settings.node_cap)


def _wanted(settings: Settings) -> tuple[str, int | None]:
    """Return the setting that bounds the limit, and its value."""
    if settings.max_limit is not None or not isinstance(settings.limit, int):
        return "max_limit", settings.max_limit
    return "limit", settings.limit


def _gate(settings: Settings, threads: int) -> tuple[int, int, int]:
    field, wanted = _wanted(settings)
    spare = settings.reserve
    if spare is None:
        # One thread that can refuse was measured to be enough; a probe may need another.
        spare = 1 if threads < 16 else 2
    elif not 1 <= spare < threads:
        raise ConfigError(
            "reserve", spare, f"an integer from 1 to {threads - 1} with {threads} threads",
            "a refusal needs a thread that neither runs nor waits",
        )  # fmt: skip
    queue = settings.max_queue
    if queue is None:
        queue = threads // 4
        if wanted is not None:
            queue = max(0, min(queue, threads - spare - wanted))
        queue = min(queue, threads - spare - 1)
    limit = threads - spare - queue if wanted is None else wanted
    if limit < 1 or limit + queue + spare > threads:
        if wanted is None or queue > threads - spare - 1:
            limit = max(limit, 1)
            field, value, largest = "max_queue", queue, max(0, threads - spare - limit)
        else:
            value, largest = wanted, threads - spare - queue
        total = limit + queue + spare
        raise ConfigError(
            field, value,
            f"at most {largest}: limit {limit} + waiting {queue} + spare {spare} = {total}, "
            f"but there are {threads} threads",
            f"set {field} = {largest} or --threads {total}; here a request that waits holds a "
            "thread, and without a spare one nothing can be refused",
        )  # fmt: skip
    return limit, queue, spare


def _executor(settings: Settings, threads: int) -> tuple[int, int, int]:
    field, wanted = _wanted(settings)
    spare = settings.reserve or 0
    if spare >= threads:
        raise ConfigError(
            "reserve", spare, f"an integer from 0 to {threads - 1} with {threads} threads",
            "exempt requests have threads of their own here, so none need be kept",
        )  # fmt: skip
    limit = threads - spare if wanted is None else wanted
    if limit + spare > threads:
        raise ConfigError(
            field, limit,
            f"at most {threads - spare}: limit {limit} + spare {spare} = {limit + spare}, but "
            f"there are {threads} threads",
            f"set {field} = {threads - spare} or --threads {limit + spare}",
        )  # fmt: skip
    return limit, 4 * threads if settings.max_queue is None else settings.max_queue, spare


def _class_cap(settings: Settings, limit: int) -> int | None:
    if isinstance(settings.cap, int):
        return settings.cap
    if isinstance(settings.limit, int):
        return None  # whoever writes 4 means 4, also for the one endpoint that matters
    classes = settings.partition_by != "none" and (
        settings.partition_by == "endpoint" or any(not rule.exempt for rule in settings.rules)
    )
    # With one class only, a cap would merely leave slots idle.
    return limit - max(1, limit // 8) if classes and limit >= 4 else None
