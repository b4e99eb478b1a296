"""
Real threads that switch after every few bytecodes.

Luck decides about the order; whatever it is, in the end no slot may be missing, none too
many, and nobody may still wait. Bounded by counts, not by time.
"""

from __future__ import annotations

import ctypes
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from gunicorn_admission.core.limits import AdaptiveLimit, FixedLimit
from gunicorn_admission.core.limits.base import Limit
from gunicorn_admission.core.policy import PartitionPolicy, Policy
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome, Priority, State
from gunicorn_admission.errors import Rejected
from gunicorn_admission.limiter import Limiter
from tests.callers import PATIENCE, Caller

pytestmark = pytest.mark.stress

THREADS = 8
MS = 1_000_000


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def limiter(
    limit: int, *, algorithm: Callable[[], Limit] | None = None, max_limit: int = 0, **policy: int
) -> Limiter:
    bounds = Policy(max_limit=max_limit or limit, **{"max_queue": 1000} | policy)  # type: ignore[arg-type]
    return Limiter(
        policy=bounds,
        limit=algorithm or (lambda: FixedLimit(limit)),
        partitions=[
            PartitionPolicy(name="shared", share=0.25),
            PartitionPolicy(name="capped", cap=max(1, limit // 2)),
        ],
    )


@contextmanager
def everybody(work: Callable[[random.Random], None], threads: int = THREADS) -> Iterator[None]:
    """Run work in many threads that start together; leave when all have ended."""
    barrier = threading.Barrier(threads + 1)

    def run(seed: int) -> None:
        draw = random.Random(seed)
        barrier.wait(PATIENCE)
        work(draw)

    callers = [Caller(lambda seed=seed: run(seed)) for seed in range(threads)]  # type: ignore[misc]
    barrier.wait(PATIENCE)
    yield
    for caller in callers:
        caller.result()


def nothing_lost(made: Limiter, limit: int) -> None:
    """Nobody runs or waits, the totals add up, and exactly ``limit`` permits can be taken."""
    made.set_mode("enforce")
    made.set_limit(limit)
    made.tick()
    seen = made.statistics()
    assert (seen.inflight, seen.waiting) == (0, 0)
    assert seen.arrivals == seen.granted + seen.shed_total
    assert sum(p.granted for p in seen.partitions.values()) == seen.granted
    assert all(p.inflight == p.waiting == 0 for p in seen.partitions.values())
    assert (seen.leaked, seen.released_twice) == (0, 0)
    controller = made._controller
    assert controller.changed == controller.events == []
    assert not any(p.running or p.stuck for p in controller.shares)
    held = controller.shares.held
    permits = [made.try_acquire(partition="fresh") for _ in range(limit - held + 1)]
    assert [p is not None for p in permits] == [True] * (limit - held) + [False]
    for permit in permits:
        if permit is not None:
            permit.release()


def test_never_more_than_the_limit_run() -> None:
    made = limiter(3)
    inside = threading.Semaphore(3)

    def work(draw: random.Random) -> None:
        for _ in range(2000):
            with made.acquire(timeout=PATIENCE):
                assert inside.acquire(blocking=False), "a fourth is inside"
                inside.release()

    with everybody(work):
        pass
    assert made.statistics().granted == THREADS * 2000
    nothing_lost(made, 3)


def test_timeouts_against_releases() -> None:
    """Waits of about the time that a slot is held: grants and expiries meet all the time."""
    made = limiter(2)
    counts = {True: 0, False: 0}
    lock = threading.Lock()

    def work(draw: random.Random) -> None:
        mine = {True: 0, False: 0}
        for _ in range(1200):
            try:
                with made.acquire(
                    timeout=draw.choice([0, 1e-5, 1e-4, 3e-4, 1e-3]),
                    priority=draw.choice(list(Priority)),
                    partition=draw.choice([None, "shared", "capped"]),
                    deadline=draw.choice([None, 0.001, 1.0]),
                ):
                    for _ in range(draw.randrange(300)):
                        pass
                mine[True] += 1
            except Rejected:
                mine[False] += 1
        with lock:
            for key, count in mine.items():
                counts[key] += count

    with everybody(work):
        pass
    seen = made.statistics()
    assert (seen.granted, seen.shed_total) == (counts[True], counts[False])
    assert min(counts.values()) > 0
    nothing_lost(made, 2)


def test_no_wake_up_is_lost() -> None:
    """With nobody giving up, each of them must get its turn: a lost wake-up hangs here."""
    made = limiter(1, max_wait_ns=3600 * 1000 * MS)

    def work(draw: random.Random) -> None:
        for _ in range(1500):
            made.acquire(timeout=3600).release(draw.choice(list(Outcome)))

    with everybody(work):
        pass
    assert made.statistics().shed_total == 0
    nothing_lost(made, 1)


def test_limit_changes_against_everything() -> None:
    made = limiter(6, max_limit=6, max_wait_ns=5 * MS)
    over = threading.Event()

    def work(draw: random.Random) -> None:
        for _ in range(1500):
            try:
                with made.acquire(partition=draw.choice([None, "shared", "capped"])):
                    pass
            except Rejected:
                pass

    with everybody(work):
        draw = random.Random(7)
        for _ in range(1200):
            made.set_limit(draw.choice([1, 2, 6, None]))
            seen = made.statistics()
            if seen.inflight > 6:
                over.set()
            draw.choice([
                made.tick, made.pause, made.resume, made.resume,
                lambda: made.set_mode("enforce"),
            ])()  # fmt: skip
        made.resume()
    assert not over.is_set()
    nothing_lost(made, 6)


def test_modes_against_everything() -> None:
    made = limiter(2, max_wait_ns=2 * MS)

    def work(draw: random.Random) -> None:
        for _ in range(1200):
            try:
                with made.acquire():
                    pass
            except Rejected:
                pass

    with everybody(work):
        for _ in range(400):
            for mode in ("monitor", "off", "enforce"):
                made.set_mode(mode)
    nothing_lost(made, 2)


def test_exceptions_inside_and_out() -> None:
    made = limiter(3)

    def work(draw: random.Random) -> None:
        for _ in range(1500):
            try:
                with made.acquire(timeout=0.0005):
                    raise draw.choice([ValueError, TimeoutError, KeyboardInterrupt, SystemExit])
            except (Rejected, ValueError, TimeoutError, KeyboardInterrupt, SystemExit):
                pass

    with everybody(work):
        pass
    nothing_lost(made, 3)


class Interrupted(BaseException):
    """Raised from outside in a thread that waits."""


def test_exceptions_in_waits() -> None:
    """
    Raised asynchronously in threads that sleep in a queue, as a signal handler would.

    They are sent only while their target stands in the queue with every slot taken. An
    asynchronous exception inside the locked sections of a thread that runs is beyond what
    Python code can survive, so none is sent there: the target sleeps until it is woken.
    """
    made = limiter(1, max_wait_ns=3600 * 1000 * MS)
    for _ in range(150):
        held = made.acquire()
        started = threading.Event()
        identity: list[int] = []

        def wait() -> None:
            identity.append(threading.get_ident())  # noqa: B023
            started.set()  # noqa: B023
            made.acquire(timeout=3600).release()

        caller = Caller(wait)
        assert started.wait(PATIENCE)
        asleep(made, identity[0])
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(identity[0]), ctypes.py_object(Interrupted)
        )
        held.release()  # wakes it, with its slot granted, into the exception
        with pytest.raises(Interrupted):
            caller.result()
    nothing_lost(made, 1)


def asleep(made: Limiter, identity: int) -> None:
    """Return once a thread sleeps in the condition of its ticket."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        frame = sys._current_frames()[identity]
        if frame.f_code.co_name == "wait" and frame.f_code.co_filename == threading.__file__:
            return
    raise AssertionError("it does not wait")


def test_tickets_of_adapters() -> None:
    """Offer, abandon, detach, reclassify and hand on, all told by callbacks."""
    made = limiter(3, max_wait_ns=MS, low_max_wait_ns=MS)
    told: dict[Ticket, int] = {}
    lock = threading.Lock()

    def decided(ticket: Ticket) -> None:
        with lock:
            told[ticket] = told.get(ticket, 0) + 1
        if ticket.state is State.GRANTED:
            made.finish(ticket, Outcome.SUCCESS)

    waited: list[Ticket] = []

    def work(draw: random.Random) -> None:
        mine = []
        for _ in range(1500):
            group = made.partition(draw.choice([None, "shared", "capped"]))
            now_ns = time.monotonic_ns()
            ticket = Ticket(group, draw.choice(list(Priority)), now_ns, decided=decided)
            state = made.offer(ticket, now_ns)
            if state is State.WAITING:
                mine.append(ticket)
                if draw.random() < 0.3:
                    made.abandon(ticket)
            elif state is State.GRANTED:
                step = draw.randrange(4)
                if step == 0:
                    made.detach(ticket)
                elif step == 1:
                    made.reclassify(ticket, draw.choice(["shared", "capped", "other"]))
                following: Ticket | None = ticket
                while following is not None:
                    if following is not ticket:
                        with lock:
                            told[following] = told.get(following, 0) + 1
                    following = made.finish_and_take(following, Outcome.SUCCESS)
        with lock:
            waited.extend(mine)

    with everybody(work):
        pass
    made.close()
    assert set(told) == set(waited)
    assert set(told.values()) <= {1}
    # An abandoned one may have been granted in that moment, and ended by both.
    made._controller.totals.released_twice = 0
    nothing_lost(made, 3)


def test_the_default_limit_under_contention() -> None:
    made = limiter(
        8, algorithm=lambda: AdaptiveLimit(maximum=8), max_wait_ns=5 * MS, low_max_wait_ns=MS
    )

    def work(draw: random.Random) -> None:
        for _ in range(1500):
            permit = made.try_acquire(
                timeout=draw.choice([0.0, None]), priority=draw.choice(list(Priority))
            )
            if permit is not None:
                permit.release(draw.choice(list(Outcome)))

    with everybody(work):
        pass
    seen = made.statistics()
    assert 1 <= seen.limit <= 8
    nothing_lost(made, 8)
