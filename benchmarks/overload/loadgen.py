"""
An open-loop HTTP/1.1 load generator: arrivals are fixed in advance and wait for nobody.

Latency and the clients' patience both count from the scheduled time, so neither a slow
server nor a late generator can hide delay; how late it was itself is in its records. One
process, one epoll loop; 4000 new connections a second take about half a core.

    python -m benchmarks.overload.loadgen PLAN.json FOLDER
"""

from __future__ import annotations

import gc
import math
import mmap
import os
import random
import resource
import select
import sys
import time
from array import array
from collections import deque
from contextlib import suppress
from pathlib import Path

from benchmarks.overload.client import Pool
from benchmarks.overload.plan import DATABASE_STATES, Plan, arrivals
from benchmarks.overload.records import Generated, Outcome, Record, write
from benchmarks.overload.signed import Requests

__all__ = ["Generator"]

_PENDING = 255
_LEAD = 0.3
_BATCH = 32
_DESCRIPTORS = 100_000  # ten times the capacity and 5 s of patience: 20 000 clients at once


class Generator:
    """Sends each request on time, gives up when its client would, notes how it ended."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        chance = random.Random(plan.seed)
        self._requests = [Requests(kind, plan, chance) for kind in plan.kinds]
        planned = arrivals(plan)
        number = len(planned)
        self._kind = array("B", (arrival.kind for arrival in planned))
        self._due = array("d", (arrival.at for arrival in planned))
        self._sent = array("d", bytes(8 * number))
        self._ended = array("d", bytes(8 * number))
        self._outcome = array("B", [_PENDING]) * number
        self._next = 0
        self._phases = deque(zip(plan.starts(), plan.phases, strict=True))
        # One queue for each patience is in the order in which its clients give up.
        self._waiting: dict[float, deque[int]] = {kind.timeout: deque() for kind in plan.kinds}
        self._queue_of = [self._waiting[kind.timeout] for kind in plan.kinds]
        self._patience = max(self._waiting)
        self._pool = Pool(plan.port, plan.keep_alive, self._end)

    def run(self) -> None:
        """Return when every request has ended; that is bounded by the plan and the patience."""
        with Path(self.plan.control).open("r+b") as file, mmap.mmap(file.fileno(), 0) as control:
            began = self._began = time.monotonic() + _LEAD
            self._due = array("d", (began + at for at in self._due))
            cpu = time.process_time()
            end = began + self.plan.seconds
            while True:
                now = time.monotonic()
                wake = min(
                    self._switch(now, control),
                    self._launch(now),
                    self._give_up(now),
                    end if now < end else end + self._patience,
                )
                busy = any(self._waiting.values()) or self._next < len(self._due)
                if now >= end and not busy:
                    break
                self._turn(wake)
            control[0] = 0
            self._pool.close()
            self._cpu = (time.process_time() - cpu) / (time.monotonic() - began)

    def save(self, folder: Path) -> None:
        """Write the records of all requests."""
        columns = zip(
            self._kind, map(Outcome, self._outcome), self._due, self._sent, self._ended, strict=True
        )
        pool = self._pool
        about = Generated(
            began=self._began,
            cpu=round(self._cpu, 3),
            shed=pool.shed,
            shed_with_retry_after=pool.shed_with_retry_after,
            stale=pool.stale,
        )
        write(folder, (Record(*values) for values in columns), about)

    def _switch(self, now: float, control: mmap.mmap) -> float:
        """Set the database as the phase says; when the next phase begins."""
        while self._phases and now >= self._began + self._phases[0][0]:
            control[0] = DATABASE_STATES.index(self._phases.popleft()[1].database)
        return self._began + self._phases[0][0] if self._phases else math.inf

    def _launch(self, now: float) -> float:
        """Send what is due, a few at a time; when the next one is due."""
        due, number = self._due, len(self._due)
        last = min(number, self._next + _BATCH)
        while self._next < last and due[self._next] <= now:
            id = self._next
            self._next += 1
            kind = self._kind[id]
            self._sent[id] = time.monotonic()
            self._queue_of[kind].append(id)
            self._pool.ask(id, self._requests[kind].numbered(id))
        return due[self._next] if self._next < number else math.inf

    def _give_up(self, now: float) -> float:
        """Disconnect the clients whose patience has ended; when the next one's ends."""
        soonest = math.inf
        for patience, queue in self._waiting.items():
            while queue:
                id = queue[0]
                if self._outcome[id] == _PENDING:
                    leaves = self._due[id] + patience
                    if leaves > now:
                        soonest = min(soonest, leaves)
                        break
                    self._pool.leave(id)
                    self._end(id, Outcome.GAVE_UP, now)
                queue.popleft()
        return soonest

    def _turn(self, wake: float) -> None:
        """Wait for answers until then."""
        pause = wake - time.monotonic()
        if pause > 0:  # select waits in microseconds, epoll in milliseconds
            select.select([self._pool.poller.fileno()], (), (), pause)
        self._pool.advance()

    def _end(self, id: int, outcome: Outcome, now: float) -> None:
        self._outcome[id] = outcome
        self._ended[id] = now


def _prepare_process() -> None:
    """Room for many connections; and where root may, a priority that keeps it on time."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (_DESCRIPTORS, min(most, _DESCRIPTORS)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(most, wanted)))
            break
        except (ValueError, OSError):
            continue
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    gc.disable()  # a pause of the generator would be a latency of the server


def main(plan: str, folder: str) -> None:
    generator = Generator(Plan.load(Path(plan)))
    _prepare_process()
    generator.run()
    generator.save(Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
