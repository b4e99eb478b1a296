"""
What a bound over all workers of a node adds to a request.

    python -m benchmarks.node [--rounds 7] [--seconds 0.2] [--json FILE]

Measured in one worker, alone and while another takes and gives slots all the time, beside
what the bound could be made of: a lock in a file around a count in shared memory, and a
semaphore between processes, which is cheap and loses what a killed process held.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.comparison import Comparison, command, interleaved
from benchmarks.contention import Loop, nanoseconds, roomy_limiter
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome, Priority
from gunicorn_admission.scoreboard import NodeSlots, Page
from gunicorn_admission.scoreboard.page import Column

__all__ = ["measure"]

WORKERS = (1, 8, 64)
LIMIT = 20


class Contender(NamedTuple):
    """The loop of one worker, and that of another one that is at it as well."""

    loop: Loop
    rival: Loop | None = None


def measure(rounds: int, seconds: float) -> list[Comparison]:
    """Everything here; each figure takes ``seconds``, each ratio comes ``rounds`` times."""
    with tempfile.NamedTemporaryFile() as file:
        path = Path(file.name)
        return [
            *_compare("a request, 8 workers", _requests(), rounds, seconds),
            *(
                one
                for workers in WORKERS
                for one in _compare(
                    f"take + give, {workers} workers", _pairs(path, workers), rounds, seconds
                )
            ),
            *_compare("take + give, another at it", _pairs(path, 8, True), rounds, seconds),
            *_compare("refusal, 8 workers", _refusals(path), rounds, seconds),
        ]


def _compare(
    what: str, contenders: dict[str, Contender], rounds: int, seconds: float
) -> list[Comparison]:
    figures = interleaved(
        {name: partial(_measured, one, seconds) for name, one in contenders.items()}, rounds
    )
    ours, *peers = contenders
    return [
        Comparison(what=what, unit="ns", ours=figures[ours], peer=peer, theirs=figures[peer])
        for peer in peers
    ]


def _measured(contender: Contender, seconds: float) -> float:
    with _at_it(contender.rival):
        return nanoseconds(contender.loop, 1, seconds)


@contextmanager
def _at_it(loop: Loop | None) -> Iterator[None]:
    """A process that does the same all the time."""
    if loop is None:
        yield
        return
    pid = os.fork()
    if not pid:
        while True:
            loop(1000)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


# -- who takes part ----------------------------------------------------------------------


def _requests() -> dict[str, Contender]:
    return {
        "with": Contender(_request(_node(8)[0])),
        "the same without a bound": Contender(_request(None)),
    }


def _pairs(path: Path, workers: int, rival: bool = False) -> dict[str, Contender]:
    page = Page(used=workers)
    slots, locked, semaphore = _node(workers), Locked(path, page), _semaphore(LIMIT)
    return {
        "ours": Contender(_slots(slots[0]), _slots(slots[-1]) if rival else None),
        "flock around a count": Contender(
            locked.loop(0), Locked(path, page).loop(workers - 1) if rival else None
        ),
        "BoundedSemaphore": Contender(semaphore, semaphore if rival else None),
    }


def _refusals(path: Path) -> dict[str, Contender]:
    slots, page = _node(8), Page(used=8)
    for _ in range(LIMIT):
        slots[-1].take("/", 1)
    page.set(Column.FIRST_BOUND, 7, LIMIT)
    return {
        "ours": Contender(_slots(slots[0])),
        "flock around a count": Contender(Locked(path, page).loop(0)),
        "BoundedSemaphore": Contender(_semaphore(0)),
    }


def _node(workers: int) -> list[NodeSlots]:
    page = Page(used=workers)
    for row in range(workers):
        page.set(Column.PID, row, 1)
    return [NodeSlots(page, row, LIMIT, {}) for row in range(workers)]


def _request(slots: NodeSlots | None) -> Loop:
    """What the executor does for a request."""
    limiter = roomy_limiter()
    if slots is not None:
        limiter.share(slots)

    def loop(times: int) -> None:
        for _ in range(times):
            now_ns = time.monotonic_ns()
            ticket = Ticket(limiter.partition("/orders"), Priority.DEFAULT, now_ns)
            limiter.offer(ticket, now_ns)
            limiter.finish_and_take(ticket, Outcome.SUCCESS)

    return loop


def _slots(slots: NodeSlots) -> Loop:
    def loop(times: int) -> None:
        for _ in range(times):
            if slots.take("/", time.monotonic_ns()):
                slots.give("/")

    return loop


def _semaphore(limit: int) -> Loop:
    semaphore = multiprocessing.BoundedSemaphore(LIMIT)
    for _ in range(LIMIT - limit):
        semaphore.acquire()

    def loop(times: int) -> None:
        for _ in range(times):
            time.monotonic_ns()
            if semaphore.acquire(False):
                semaphore.release()

    return loop


class Locked:
    """A row of counts that is added up and changed under a lock in a file."""

    def __init__(self, path: Path, page: Page) -> None:
        self._file = path.open("rb")  # a file of its own, since the lock belongs to that
        self._page = page

    def loop(self, row: int) -> Loop:
        handle, page, column = self._file, self._page, Column.FIRST_BOUND

        def change(n: int) -> bool:
            fcntl.flock(handle, fcntl.LOCK_EX)
            try:
                if n > 0 and sum(page.column(column)) >= LIMIT:
                    return False
                page.set(column, row, page.get(column, row) + n)
                return True
            finally:
                fcntl.flock(handle, fcntl.LOCK_UN)

        def loop(times: int) -> None:
            for _ in range(times):
                time.monotonic_ns()
                if change(1):
                    change(-1)

        return loop


def main() -> None:
    command(__doc__, measure)


if __name__ == "__main__":
    main()
