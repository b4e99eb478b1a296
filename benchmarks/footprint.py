"""Bytes that a limiter, a traffic class and a permit take, as tracemalloc counts them."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

from benchmarks.comparison import Comparison
from benchmarks.contention import roomy_limiter
from gunicorn_admission.limiter.permit import Permit

__all__ = ["footprint"]


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
    """Memory of one more limiter, class and permit."""
    limiter = roomy_limiter()
    makers: dict[str, Callable[[int], object]] = {
        "limiter": lambda _: roomy_limiter(),
        "class of a limiter": lambda index: limiter.partition(f"/route/{index}"),
        "permit held": lambda _: limiter.acquire(),
    }
    return [
        Comparison(what=f"memory a {name}", unit="bytes", ours=[_bytes_each(make, number)])
        for name, make in makers.items()
    ]
