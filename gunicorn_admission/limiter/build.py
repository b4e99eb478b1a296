"""From settings to the parts of a limiter."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from attrs import evolve

from gunicorn_admission.core.limits import (
    AdaptiveLimit,
    AIMDLimit,
    FixedLimit,
    Gradient2Limit,
    VegasLimit,
    WindowedLimit,
)
from gunicorn_admission.core.limits.base import Limit
from gunicorn_admission.core.policy import PartitionPolicy, Policy
from gunicorn_admission.settings import Settings

__all__ = ["Parts", "build", "limit_factory"]

#: Slots of a limiter that is told neither a limit nor a number of threads.
DEFAULT_THREADS = 64


class Parts(NamedTuple):
    """What a limiter is made from."""

    policy: Policy
    limit: Callable[[], Limit]
    partitions: tuple[PartitionPolicy, ...]


def build(settings: Settings, policy: Policy | None = None) -> Parts:
    """
    Work settings out for a limiter that stands alone.

    It guards something other than the threads of a server, so no class is kept from
    holding all slots unless ``cap`` says so.

    Args:
        settings: What the user has set.
        policy: Bounds to use in place of those that follow from the settings.
    """
    fixed = settings.limit if isinstance(settings.limit, int) else None
    threads = settings.threads or settings.max_limit or fixed or DEFAULT_THREADS
    resolved = settings.derive(threads, waiting_holds_thread=False)
    cap = settings.cap if isinstance(settings.cap, int) else None
    policy = policy or evolve(resolved.policy, class_cap=cap)
    return Parts(policy, limit_factory(resolved.algorithm, fixed, policy), resolved.partitions)


def limit_factory(algorithm: str, fixed: int | None, policy: Policy) -> Callable[[], Limit]:
    """Return what makes the limit of that name within the bounds of a policy."""
    low, high = policy.min_limit, policy.max_limit
    if fixed is not None:
        held = min(fixed, high)
        return lambda: FixedLimit(held)
    makers: dict[str, Callable[[], Limit]] = {
        "adaptive": lambda: AdaptiveLimit(maximum=high, minimum=low, jitter=random.Random().random),
        "aimd": lambda: AIMDLimit(initial=high, minimum=low, maximum=high),
        "gradient2": lambda: WindowedLimit(Gradient2Limit(initial=high, minimum=low, maximum=high)),
        "vegas": lambda: WindowedLimit(VegasLimit(initial=high, maximum=high)),
    }
    return makers[algorithm]
