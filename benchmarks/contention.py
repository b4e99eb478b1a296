"""What one operation costs when a number of threads do nothing else; and what that is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome, Priority
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.settings import Settings

__all__ = ["LOOPS", "Loop", "classes", "nanoseconds", "permits", "refusals", "roomy_limiter"]

Loop = Callable[[int], None]
"""Does the operation so many times; the loop is part of it, so that no call is added."""

ENOUGH = 1024
_BATCH = 50


def nanoseconds(loop: Loop, threads: int, seconds: float) -> float:
    """Wall time an operation over all threads together: the inverse of the throughput."""
    counts = [0] * threads
    ready = threading.Barrier(threads + 1)
    stop = threading.Event()

    def work(index: int) -> None:
        ready.wait()
        while True:
            loop(_BATCH)
            counts[index] += _BATCH
            if stop.is_set():
                return

    workers = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
    for worker in workers:
        worker.start()
    ready.wait()
    began = time.perf_counter_ns()
    time.sleep(seconds)
    stop.set()
    for worker in workers:
        worker.join()
    return (time.perf_counter_ns() - began) / sum(counts)


def roomy_limiter() -> Limiter:
    """The adaptive limiter at work, its limit never reached: what is left is its own cost."""
    return Limiter(Settings(max_limit=ENOUGH, min_limit=ENOUGH // 2))


def permits() -> Loop:
    """``acquire`` and ``release`` as an application calls them."""
    acquire = roomy_limiter().acquire

    def loop(times: int) -> None:
        for _ in range(times):
            acquire().release()

    return loop


def tickets() -> Loop:
    """What the executor does for a request: find its class, offer, finish and take the next."""
    limiter = roomy_limiter()

    def loop(times: int) -> None:
        for _ in range(times):
            now_ns = time.monotonic_ns()
            ticket = Ticket(limiter.partition("/orders"), Priority.DEFAULT, now_ns)
            limiter.offer(ticket, now_ns)
            limiter.finish_and_take(ticket, Outcome.SUCCESS)

    return loop


def lock_pair() -> Loop:
    """Entering and leaving a lock twice: the least that a pair of calls can cost."""
    lock = threading.Lock()

    def loop(times: int) -> None:
        for _ in range(times):
            with lock:
                pass
            with lock:
                pass

    return loop


def working_lock_pair() -> Loop:
    """The same with about 0.3 us of arithmetic inside, which is what deciding takes."""
    lock = threading.Lock()
    state = [0]

    def loop(times: int) -> None:
        for _ in range(times):
            with lock:
                for _ in range(8):
                    state[0] += 1
            with lock:
                for _ in range(8):
                    state[0] += 1

    return loop


def condition_pair() -> Loop:
    """Entering and leaving a condition twice; nobody waits on it."""
    condition = threading.Condition()

    def loop(times: int) -> None:
        for _ in range(times):
            with condition:
                pass
            with condition:
                pass

    return loop


def semaphore_pair() -> Loop:
    """What people write themselves; never exhausted here."""
    semaphore = threading.BoundedSemaphore(ENOUGH)

    def loop(times: int) -> None:
        for _ in range(times):
            semaphore.acquire()
            semaphore.release()

    return loop


LOOPS: dict[str, Callable[[], Loop]] = {
    "acquire + release": permits,
    "offer + finish of a ticket": tickets,
    "two `with` on a Condition": condition_pair,
    "BoundedSemaphore acquire + release": semaphore_pair,
    "two `with` on a Lock": lock_pair,
    "two `with` on a Lock, 0.3 us inside": working_lock_pair,
}


def refusals() -> tuple[Loop, Loop]:
    """Being refused at once: by the limiter, and by an exhausted semaphore."""
    limiter = Limiter(Settings(limit=1, max_queue=0))
    semaphore = threading.BoundedSemaphore(1)

    def ours(times: int) -> None:
        with limiter.acquire():
            for _ in range(times):
                limiter.try_acquire()

    def theirs(times: int) -> None:
        with semaphore:
            for _ in range(times):
                semaphore.acquire(blocking=False)

    return ours, theirs


def classes(number: int) -> Loop:
    """``acquire`` and ``release`` in turn for so many traffic classes of one limiter."""
    limiter = roomy_limiter()
    names: Sequence[str] = [f"/route/{index}" for index in range(number)]
    for name in names:
        limiter.partition(name)
    at = 0

    def loop(times: int) -> None:
        nonlocal at
        for _ in range(times):
            at = (at + 1) % number
            limiter.acquire(partition=names[at]).release()

    return loop
