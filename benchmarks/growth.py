"""
How the cost of the limiter grows: with threads, with classes, with those who wait, with limits.

    python -m benchmarks.growth [--rounds 7] [--seconds 0.2] [--json FILE]

Each figure stands beside the same with the smallest number, measured in the same round: a
ratio of 1 means that it does not grow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial

from benchmarks.comparison import Comparison, command, interleaved
from benchmarks.contention import Loop, classes, nanoseconds, permits
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome, Priority, State
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.settings import Settings

__all__ = ["measure"]

THREADS = (4, 16, 64, 256, 512)
CLASSES = (1, 10, 100, 1000)
WAITERS = (4, 16, 64, 256, 1000)
LIMITS = (4, 16, 64, 256, 512)
_HOUR_NS = 3600 * 10**9


def measure(rounds: int, seconds: float) -> list[Comparison]:
    """Everything here; each figure takes ``seconds``, each ratio comes ``rounds`` times."""
    growing: Mapping[str, Mapping[int, Callable[[], float]]] = {
        "acquire + release by {} threads": {
            number: partial(nanoseconds, permits(), number, seconds) for number in THREADS
        },
        "acquire + release of {} classes in turn": {
            number: partial(nanoseconds, classes(number), 1, seconds) for number in CLASSES
        },
        "arrival and hand-off, {} waiting": {
            number: partial(_waiting, number, seconds) for number in WAITERS
        },
        "acquire + release of the last of {} slots": {
            number: partial(_held, number, seconds) for number in LIMITS
        },
    }
    return [
        one for what, contenders in growing.items() for one in _compare(what, contenders, rounds)
    ]


def _compare(
    what: str, contenders: Mapping[int, Callable[[], float]], rounds: int
) -> list[Comparison]:
    figures = interleaved({str(n): contender for n, contender in contenders.items()}, rounds)
    first, *others = contenders
    return [
        Comparison(
            what=what.format(number),
            unit="ns",
            ours=figures[str(number)],
            peer=f"{first}",
            theirs=figures[str(first)],
        )
        for number in others
    ]


# Queues and held slots are made for each figure: what stands still between two rounds is taken
# for a stall.


def _waiting(number: int, seconds: float) -> float:
    return nanoseconds(waiting(number), 1, seconds)


def _held(number: int, seconds: float) -> float:
    """``acquire`` and ``release`` of the last of so many slots."""
    limiter = Limiter(Settings(limit=number))

    def loop(times: int) -> None:
        for _ in range(times):
            limiter.acquire().release()

    with ExitStack() as others:
        for _ in range(number - 1):
            others.enter_context(limiter.acquire())
        return nanoseconds(loop, 1, seconds)


def waiting(number: int) -> Loop:
    """One comes, one goes and hands its slot on, while so many wait."""
    limiter = Limiter(Settings(limit=1, max_queue=2 * number, max_wait="1h"))
    partition = limiter.partition("/orders")

    def arrive() -> Ticket:
        now_ns = time.monotonic_ns()
        # HIGH and in no hurry: a standing queue is what is wanted here, and no reason to refuse.
        ticket = Ticket(partition, Priority.HIGH, now_ns, _HOUR_NS)
        ticket.decided = _decided
        limiter.offer(ticket, now_ns)
        return ticket

    holder = arrive()
    for _ in range(number):
        arrive()

    def loop(times: int) -> None:
        nonlocal holder
        for _ in range(times):
            if arrive().state is not State.WAITING:
                raise RuntimeError("one that should wait was refused")
            following = limiter.finish_and_take(holder, Outcome.SUCCESS)
            if following is None:
                raise RuntimeError("a slot was lost")
            holder = following

    return loop


def _decided(ticket: Ticket) -> None:
    """Whoever hands the slot on goes on with the one that has it."""


def main() -> None:
    command(__doc__, measure)


if __name__ == "__main__":
    main()
