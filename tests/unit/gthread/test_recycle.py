"""When a worker that hangs asks for its successor, and when it goes."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.core.types import Outcome
from gunicorn_admission.gthread.recycle import Recycler
from gunicorn_admission.limiter import Limiter, Permit
from gunicorn_admission.scoreboard import Board
from gunicorn_admission.scoreboard.master import Asked
from gunicorn_admission.scoreboard.page import Column, Head
from gunicorn_admission.settings import Settings
from gunicorn_admission.testing import FakeClock
from tests.observing import idle

AFTER = 60
MASTER = os.getppid()


class Worker:
    """A worker of eight threads, of which one is to be left at least."""

    def __init__(self, board: Board, clock: FakeClock, node_limit: int = 0) -> None:
        self.signals: list[tuple[int, int]] = []
        self.gunicorn: Any = SimpleNamespace(alive=True, ppid=MASTER, cfg=None)
        board.seat(self.gunicorn)
        self.row = self.gunicorn.admission_row
        self.row.occupy(os.getpid(), clock())
        settings = Settings(threads=8, limit=8, min_limit=1, stall_after="1h")
        self.limiter = Limiter(settings, clock=clock)
        self._held: list[Permit] = []
        self.recycler = Recycler(
            self.gunicorn, self.row, self.limiter, AFTER * SECOND, node_limit, clock, self.kill
        )

    def kill(self, pid: int, number: int) -> None:
        self.signals.append((pid, number))

    def hang(self, count: int) -> list[Permit]:
        permits = [self.limiter.acquire() for _ in range(count)]
        self._held += permits
        return permits

    def look(self) -> list[tuple[int, int]]:
        """The signals that it has sent now."""
        self.recycler.look()
        sent, self.signals = self.signals, []
        return sent


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def board() -> Board:
    return Board()


ASK = [(MASTER, signal.SIGTTIN)]
LEAVE = [(os.getpid(), signal.SIGTERM)]


def test_it_asks_first_and_goes_when_a_fresh_one_serves(board: Board, clock: FakeClock) -> None:
    worker = Worker(board, clock)
    worker.hang(7)
    clock.advance(AFTER - 1)
    assert worker.look() == []
    clock.advance(1)
    assert worker.look() == ASK
    assert board.page.get(Column.ASKED, 0) == Asked.ASKED
    clock.advance(9)
    assert worker.look() == []
    Worker(board, clock)
    assert worker.look() == LEAVE
    assert worker.look() == []


def test_as_long_as_threads_are_left_it_stays(board: Board, clock: FakeClock) -> None:
    worker = Worker(board, clock)
    permits = worker.hang(6)
    clock.advance(AFTER)
    worker.hang(2)  # busy, and not hung yet
    assert worker.look() == []
    permits[0].release(Outcome.IGNORE)
    clock.advance(AFTER)
    assert worker.look() == ASK


def test_streams_that_have_begun_to_answer_do_not_hang(board: Board, clock: FakeClock) -> None:
    worker = Worker(board, clock)
    for permit in worker.hang(8)[:2]:
        permit._ticket.sampled_at_ns = clock()
    clock.advance(AFTER)
    assert worker.look() == []


def test_a_worker_that_stops_already_does_nothing(board: Board, clock: FakeClock) -> None:
    worker = Worker(board, clock)
    worker.hang(8)
    clock.advance(AFTER)
    worker.gunicorn.alive = False
    assert worker.look() == []


def test_siblings_wait_for_their_turn_and_longer_each_time(board: Board, clock: FakeClock) -> None:
    first, second, third = (Worker(board, clock) for _ in range(3))
    for worker in (first, second, third):
        worker.hang(8)
    clock.advance(AFTER)
    assert first.look() == ASK
    assert second.look() == third.look() == []
    Worker(board, clock).hang(8)
    assert first.look() == []  # that one began in the same instant
    clock.advance(1)
    Worker(board, clock)
    assert first.look() == LEAVE
    board.left(SimpleNamespace(cfg=None, num_workers=3), first.gunicorn)
    assert second.look() == []  # not so soon after the first
    clock.advance(AFTER)
    assert second.look() == ASK
    board.left(SimpleNamespace(cfg=None, num_workers=3), second.gunicorn)
    clock.advance(AFTER)
    assert third.look() == []
    clock.advance(AFTER)
    assert third.look() == ASK


def test_a_master_that_may_not_be_signalled_gets_the_place_back_first(
    board: Board, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(board, clock)
    worker.hang(8)
    clock.advance(AFTER)
    kill = worker.kill

    def refuse(pid: int, number: int) -> None:
        if number == signal.SIGTTIN:
            raise PermissionError
        kill(pid, number)

    monkeypatch.setattr(worker.recycler, "_kill", refuse)
    assert worker.look() == LEAVE
    assert board.page.get(Column.ASKED, 0) == Asked.NOT


def test_an_orphan_asks_nobody(board: Board, clock: FakeClock) -> None:
    worker = Worker(board, clock)
    worker.gunicorn.ppid = MASTER + 1
    worker.hang(8)
    clock.advance(AFTER)
    assert worker.look() == LEAVE


def test_the_worker_that_holds_most_of_a_hung_node_goes_first(
    board: Board, clock: FakeClock
) -> None:
    most, least, none = (Worker(board, clock, node_limit=4) for _ in range(3))
    most.hang(2)
    least.hang(1)
    clock.advance(AFTER)
    for worker, stuck in ((most, 2), (least, 1), (none, 0)):
        worker.row.publish(idle(max_limit=8, stuck=stuck))
    assert none.look() == least.look() == []
    assert most.look() == ASK
    assert board.page.cells[Head.RECYCLES] == 1
