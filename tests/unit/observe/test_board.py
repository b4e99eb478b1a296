"""The shared page as observers keep and read it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gunicorn_admission.core.events import Event, EventKind
from gunicorn_admission.observe.board import BoardSink, node_gauges
from gunicorn_admission.observe.names import BY_KEY
from gunicorn_admission.scoreboard import Board, read
from tests.observing import idle, report_of


def serving(board: Board, pid: int) -> Any:
    worker = SimpleNamespace(cfg=None)
    board.seat(worker)
    worker.admission_row.occupy(pid, 1)
    return worker


def test_a_row_is_written_on_each_tick_and_at_once_on_an_event() -> None:
    board = Board()
    row = serving(board, 1).admission_row
    now = idle(limit=5, starved=True)
    sink = BoardSink(row, lambda: now)
    sink.report(report_of(idle(limit=4)))
    assert (read(board.page)[0].limit, read(board.page)[0].ready) == (4, True)
    sink.on_event(Event(EventKind.STARVED, 0, None, {}))
    assert (read(board.page)[0].limit, read(board.page)[0].ready) == (5, False)


def test_gauges_of_the_node_are_sums_over_the_living() -> None:
    board = Board()
    one = serving(board, 1)
    two = serving(board, 1)
    gone = serving(board, 1)
    one.admission_row.publish(idle(limit=5, inflight=2, waiting=1, max_limit=8, stuck=3))
    two.admission_row.publish(idle(limit=4, inflight=1, waiting=0, max_limit=8))
    gone.admission_row.publish(idle(limit=9, inflight=9, waiting=9, max_limit=9))
    board.left(SimpleNamespace(), gone)
    gauges = node_gauges(board.page)
    assert gauges == {"limit": 9, "inflight": 3, "queue": 1, "threads_left": 13}
    assert gauges.keys() <= BY_KEY.keys()
