"""The same work on many inputs, in as many processes as there are cores."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

__all__ = ["in_processes"]

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def in_processes(
    work: Callable[[_Job], _Result], jobs: Sequence[_Job], processes: int
) -> Iterator[tuple[_Job, _Result]]:
    """
    Yield each job with its result, as they are done.

    Args:
        work: A function of a module, so that another process can find it.
        jobs: What it is called with; they and the results are pickled.
        processes: How many at the same time; 1 stays in this process.
    """
    processes = min(processes, len(jobs))
    if processes <= 1:
        for job in jobs:
            yield job, work(job)
        return
    # Not fork: the caller may have threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        futures = {pool.submit(work, job): job for job in jobs}
        for future in as_completed(futures):
            yield futures[future], future.result()
