"""Bytes that a limiter, a traffic class, a permit and a waiter take, as tracemalloc counts them."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable

from benchmarks.comparison import Comparison
from benchmarks.contention import roomy_limiter
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Priority
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.limiter.permit import Permit
from gunicorn_admission.settings import Settings

__all__ = ["footprint"]

_LIMITS: tuple[str | int, ...] = ("adaptive", "gradient2", "vegas", "aimd", 16)


def _bytes_each(make: Callable[[int], object], number: int) -> float:
    kept = [make(0)]  # what is allocated once, such as caches, is not what is asked for
    gc.collect()
    tracemalloc.start()
    try:
        kept += [make(index + 1) for index in range(number)]
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / number
    finally:
        tracemalloc.stop()
        for one in kept:
            if isinstance(one, Permit):
                one.release()


def footprint(number: int = 200) -> list[Comparison]:
    """Memory of one more limiter of each kind, class, permit and waiter."""
    limiter, full = roomy_limiter(), Limiter(Settings(limit=1, max_queue=2 * number))
    holder = full.acquire()

    def wait(index: int) -> Ticket:
        ticket = Ticket(full.partition("/"), Priority.HIGH, time.monotonic_ns(), 60 * 10**9)
        full.offer(ticket, ticket.arrived_ns)
        return ticket

    makers: dict[str, Callable[[int], object]] = {
        **{
            f"limiter, {limit if isinstance(limit, str) else 'fixed'}": _limiters(limit)
            for limit in _LIMITS
        },
        "class of a limiter": lambda index: limiter.partition(f"/route/{index}"),
        "permit held": lambda _: limiter.acquire(),
        "request that waits": wait,
    }
    figures = [
        Comparison(what=f"memory a {name}", unit="bytes", ours=[_bytes_each(make, number)])
        for name, make in makers.items()
    ]
    holder.release()
    full.close()
    return figures


def _limiters(limit: str | int) -> Callable[[int], object]:
    return lambda _: Limiter(Settings(limit=limit))
