"""
Giving a slot through a queue of waiters: how soon the next one runs, what the CPU pays.

All waiters wait for one slot. Each that gets it notes the time, holds it for 2 ms as if it
asked a database, releases it to the next and leaves; those who were woken in vain meanwhile
wait again. So with 64 waiters the queue is 32 long on average.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple, Protocol

from gunicorn_admission.core.types import Priority
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.limiter.permit import Permit
from gunicorn_admission.settings import Settings

__all__ = ["SLOTS", "HandOff", "hand_through"]

_PATIENCE = 60.0
_SERVICE = 0.002


class Slot(Protocol):
    """One slot to be had by one thread at a time, and how many wait for it."""

    def acquire(self) -> None: ...

    def release(self) -> None: ...

    def waiting(self) -> int: ...


class DirectSlot:
    """Ours: whoever releases decides who is next, and wakes only that one."""

    def __init__(self) -> None:
        self._limiter = Limiter(Settings(limit=1, max_queue=1024))
        self._permit: Permit

    def acquire(self) -> None:
        # HIGH: a standing queue is what is wanted here, and is no reason to refuse.
        self._permit = self._limiter.acquire(priority=Priority.HIGH, timeout=_PATIENCE)

    def release(self) -> None:
        self._permit.release()

    def waiting(self) -> int:
        return self._limiter.statistics().waiting


class SharedSlot:
    """One condition for everybody: ``notify_all``, and the first to look takes the slot."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._free = True
        self._waiting = 0

    def acquire(self) -> None:
        with self._condition:
            self._waiting += 1
            while not self._free:
                self._condition.wait(_PATIENCE)
            self._waiting -= 1
            self._free = False

    def release(self) -> None:
        with self._condition:
            self._free = True
            self._condition.notify_all()

    def waiting(self) -> int:
        return self._waiting


class SemaphoreSlot:
    """A semaphore: wakes one, who may still be overtaken by an arrival."""

    def __init__(self) -> None:
        self._semaphore = threading.BoundedSemaphore(1)
        self._asked: list[None] = []  # appending is atomic, counting up is not
        self._got: list[None] = []

    def acquire(self) -> None:
        self._asked.append(None)
        self._semaphore.acquire()
        self._got.append(None)

    def release(self) -> None:
        self._semaphore.release()

    def waiting(self) -> int:
        return len(self._asked) - len(self._got)


SLOTS: dict[str, Callable[[], Slot]] = {
    "ours": DirectSlot,
    "notify_all on a shared Condition": SharedSlot,
    "BoundedSemaphore": SemaphoreSlot,
}


class HandOff(NamedTuple):
    """
    Attributes:
        latency_us: Median time from the release to the next one running.
        cpu_us: CPU time of the process, a hand-off; the same sleep is in it on both sides.
    """

    latency_us: float
    cpu_us: float


def hand_through(make: Callable[[], Slot], waiters: int) -> HandOff:
    """Let so many threads wait, hand the slot through all of them."""
    slot = make()
    latencies: list[float] = []
    released = 0
    over = threading.Event()
    left = threading.Semaphore(0)

    def wait() -> None:
        nonlocal released
        slot.acquire()
        latencies.append(time.perf_counter_ns() - released)  # only one thread holds the slot
        left.release()
        time.sleep(_SERVICE)
        released = time.perf_counter_ns()
        slot.release()
        over.wait(_PATIENCE)  # the end of a thread is not part of a hand-off

    slot.acquire()
    threads = [threading.Thread(target=wait) for _ in range(waiters)]
    for thread in threads:
        thread.start()
    while slot.waiting() < waiters:
        time.sleep(0.001)
    time.sleep(0.005)  # the last one has said that it waits, and is about to
    cpu = time.process_time_ns()
    released = time.perf_counter_ns()
    slot.release()
    for _ in range(waiters):
        if not left.acquire(timeout=_PATIENCE):
            raise RuntimeError(f"{slot!r} was lost on its way")
    cpu = time.process_time_ns() - cpu
    over.set()
    for thread in threads:
        thread.join()
    return HandOff(median(latencies) / 1e3, cpu / waiters / 1e3)
