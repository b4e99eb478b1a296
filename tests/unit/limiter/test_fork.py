"""After os.fork the child starts from nothing, whatever its parent was doing."""

from __future__ import annotations

import json
import os
import select
import signal
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from gunicorn_admission.core.limits import FixedLimit
from gunicorn_admission.core.policy import Policy
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome, Priority, State
from gunicorn_admission.limiter import Limiter, Registry
from gunicorn_admission.scoreboard import NodeSlots, Page
from gunicorn_admission.settings import Settings
from tests.callers import PATIENCE, Caller, room

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


def in_child(function: Callable[[], Any]) -> Any:
    """Fork, call a function in the child and return its (JSON) result; a hang is a failure."""
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: there are threads here
        pid = os.fork()
    if pid == 0:
        try:
            answer = json.dumps(function())
        except BaseException as error:
            answer = json.dumps(repr(error))
        os.write(write_end, answer.encode())
        os._exit(0)
    os.close(write_end)
    try:
        ready, _, _ = select.select([read_end], [], [], PATIENCE)
        if not ready:
            os.kill(pid, signal.SIGKILL)
        data = os.read(read_end, 65536)
    finally:
        os.close(read_end)
        os.waitpid(pid, 0)
    assert data, "the child hangs"
    return json.loads(data)


def counts(limiter: Limiter) -> list[int]:
    seen = limiter.statistics()
    return [seen.arrivals, seen.granted, seen.inflight, seen.waiting, seen.shed_total]


def test_the_child_counts_from_nothing() -> None:
    limiter, _ = room(2)
    held = [limiter.acquire(), limiter.acquire()]
    limiter.try_acquire()
    waiting = limiter.waiter()

    def child() -> Any:
        before = counts(limiter)
        mine = [limiter.try_acquire() is not None for _ in range(3)]
        return before, mine

    assert in_child(child) == [[0, 0, 0, 0, 0], [True, True, False]]
    assert counts(limiter) == [4, 2, 2, 1, 1]
    held[0].release()
    waiting.result()


def test_a_lock_that_another_thread_held_is_free_in_the_child() -> None:
    limiter, _ = room()
    locked, done = threading.Event(), threading.Event()

    def hold() -> None:
        with limiter._lock:
            locked.set()
            done.wait(PATIENCE)

    caller = Caller(hold)
    assert locked.wait(PATIENCE)
    assert in_child(lambda: limiter.try_acquire() is not None) is True
    done.set()
    caller.result()


def test_a_permit_of_the_parent_frees_nothing_in_the_child() -> None:
    """A handler that forks: the child leaves the same ``with`` block as its parent."""
    limiter, _ = room(2)
    with limiter.acquire() as permit:
        held = limiter.acquire()

        def child() -> Any:
            permit.__exit__(None, None, None)
            held.release()
            limiter.try_acquire(timeout=0)
            return counts(limiter)

        assert in_child(child) == [1, 1, 1, 0, 0]
        assert limiter.statistics().inflight == 2


def test_a_stream_of_the_parent_frees_no_thread_in_the_child() -> None:
    limiter, clock = room(2)
    ticket = Ticket(limiter.partition(None), Priority.DEFAULT, clock())
    limiter.offer(ticket, clock())
    limiter.detach(ticket)

    def child() -> Any:
        limiter.finish(ticket, Outcome.SUCCESS)
        return limiter.statistics().limit, len(limiter._controller.streaming)

    assert in_child(child) == [2, 0]


def test_who_waited_in_the_parent_does_not_wait_in_the_child() -> None:
    limiter, clock = room()
    _held = limiter.acquire()
    ticket = Ticket(limiter.partition(None), Priority.DEFAULT, clock(), 10**12)
    limiter.offer(ticket, clock())

    def child() -> Any:
        limiter.wait(ticket)  # returns at once
        limiter.abandon(ticket)
        return ticket.state.value, counts(limiter)

    assert in_child(child) == ["shed", [0, 0, 0, 0, 0]]
    assert ticket.state is State.WAITING


def test_the_child_has_a_watchdog_of_its_own() -> None:
    policy = Policy(max_limit=1, max_wait_ns=20_000_000)
    limiter = Limiter(policy=policy, limit=lambda: FixedLimit(1))
    limiter.acquire().release()
    assert not limiter._watchdog.parked

    def child() -> Any:
        told = threading.Event()
        parked = limiter._watchdog.parked
        _held = limiter.acquire()
        ticket = Ticket(
            limiter.partition(None), Priority.DEFAULT, limiter._clock(),
            decided=lambda _: told.set(),
        )  # fmt: skip
        limiter.offer(ticket, limiter._clock())
        return parked, told.wait(PATIENCE)

    assert in_child(child) == [True, True]


def test_children_do_not_draw_the_same_jitter() -> None:
    limiter, _ = room()

    def child() -> Any:
        return [limiter._controller._jitter() for _ in range(4)]

    assert in_child(child) != in_child(child)


def test_the_algorithm_starts_afresh_too() -> None:
    limiter, _ = room()
    _held = limiter.acquire()
    before = id(limiter._controller.limit)
    assert in_child(lambda: id(limiter._controller.limit) != before) is True


def test_limiters_made_in_the_child_can_be_found_while_the_parent_makes_one() -> None:
    registry = Registry()
    making, done = threading.Event(), threading.Event()

    def make() -> Limiter:
        making.set()
        done.wait(PATIENCE)
        return Limiter()

    caller = Caller(lambda: registry.get("slow", make))
    assert making.wait(PATIENCE)
    assert in_child(lambda: registry.get("quick", Limiter) is not None) is True
    done.set()
    caller.result()


def test_a_child_has_no_part_in_a_bound_that_the_parent_shares() -> None:
    page = Page(used=1)
    limiter = Limiter(Settings(threads=8))
    limiter.share(NodeSlots(page, 0, 1, {}))
    with limiter.acquire():

        def run() -> list[int]:
            with limiter.acquire(timeout=0), limiter.acquire(timeout=0):
                return [limiter.statistics().node_limit, NodeSlots(page, 0, 1, {}).total()]

        assert in_child(run) == [0, 1]
        assert limiter.try_acquire() is None
