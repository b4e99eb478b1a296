"""What is on the page: rows of workers, as their writers and readers see them."""

from __future__ import annotations

import os
import struct
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from gunicorn_admission.scoreboard import Board, Page, Row, master, read
from gunicorn_admission.scoreboard.master import Asked
from gunicorn_admission.scoreboard.page import BOUNDS, COLUMNS, ROWS, Column, Head
from gunicorn_admission.settings.check import MOST_NODE_CAPS
from tests.observing import idle

NOW = 10**12


def worker(cfg: object = "cfg") -> Any:
    return SimpleNamespace(cfg=cfg)


def seated(board: Board, *classes: str, cfg: object = "cfg") -> Any:
    one = worker(cfg)
    board.seat(one, classes)
    return one


def serving(board: Board, *classes: str, pid: int = 0) -> Any:
    """A worker that has been forked and serves; in this process."""
    one = seated(board, *classes)
    one.admission_row.occupy(pid or os.getpid(), NOW)
    return one


# -- cells -------------------------------------------------------------------------------


def test_each_cell_is_its_own_aligned_word() -> None:
    page = Page()
    page.cells[Head.USED] = ROWS
    for column in (1, COLUMNS - 1):
        for row in (0, 1, ROWS - 1):
            page.set(column, row, column * 10_000 + row)
    assert page.get(1, ROWS - 1) == page.column(1)[-1] == 10_000 + ROWS - 1
    assert page.get(COLUMNS - 1, 1) == (COLUMNS - 1) * 10_000 + 1
    assert page.cells.itemsize == 8
    raw = page.cells.cast("B")
    offset = 8 * (ROWS + 1)
    assert raw[offset : offset + 8] == struct.pack("=q", 10_001)


def test_a_child_sees_what_the_parent_writes_and_the_other_way_round() -> None:
    page = Page()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.read(reading, 1)
        page.set(1, 1, page.get(1, 0) + 1)
        os._exit(0)
    page.set(1, 0, 41)
    os.write(writing, b".")
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)
    assert page.get(1, 1) == 42


def test_there_is_a_column_for_each_class_that_settings_allow() -> None:
    assert MOST_NODE_CAPS == BOUNDS - 1


# -- a worker's row ----------------------------------------------------------------------


def test_a_reader_sees_what_a_worker_has_published() -> None:
    board = Board()
    row = serving(board, pid=4711).admission_row
    shed = {("low", "overloaded"): 2, ("high", "expired"): 1}
    row.publish(
        idle(limit=7, max_limit=8, inflight=5, waiting=3, stuck=2, arrivals=20, granted=14,
             shed=shed, starved=True)
    )  # fmt: skip
    (seen,) = read(board.page)
    assert seen.whole
    assert (seen.slot, seen.pid, seen.generation) == (0, 4711, 1)
    assert (seen.limit, seen.inflight, seen.waiting) == (7, 5, 3)
    assert (seen.threads, seen.threads_left, seen.ready) == (8, 6, False)
    assert (seen.arrivals, seen.admitted, seen.shed) == (20, 14, 3)
    row.publish(idle())
    assert read(board.page)[0].ready


def test_a_row_whose_writer_died_in_the_middle_is_told_apart() -> None:
    board = Board()
    row = serving(board).admission_row
    row.publish(idle(limit=3))
    board.page.set(Column.SEQUENCE, 0, board.page.get(Column.SEQUENCE, 0) + 1)
    assert not read(board.page)[0].whole
    row.publish(idle(limit=4))  # its successor repairs that
    (seen,) = read(board.page)
    assert (seen.whole, seen.limit) == (True, 4)


def test_no_reader_ever_sees_figures_that_do_not_belong_together() -> None:
    board = Board()
    row = serving(board).admission_row
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            row.publish(idle(limit=number, inflight=number, waiting=number, arrivals=number))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        whole = [seen for _ in range(3000) if (seen := read(board.page)[0]).whole]
    finally:
        stop.set()
        writer.join()
    assert whole
    for seen in whole:
        assert len({seen.limit, seen.inflight, seen.waiting, seen.arrivals}) == 1


# -- who sits where ----------------------------------------------------------------------


def test_totals_go_on_in_the_place_of_a_worker_that_was_replaced() -> None:
    board = Board()
    first = serving(board)
    first.admission_row.publish(idle(arrivals=10, granted=9, shed={("low", "overloaded"): 1}))
    board.left(SimpleNamespace(), first)
    (gone,) = read(board.page)
    assert (gone.pid, gone.inflight, gone.arrivals, gone.ready) == (0, 0, 10, False)
    second = serving(board)
    assert (first.admission_slot, second.admission_slot) == (0, 0)
    second.admission_row.publish(idle(arrivals=1, granted=1))
    (seen,) = read(board.page)
    assert (seen.generation, seen.arrivals, seen.admitted, seen.shed) == (2, 11, 10, 1)


def test_what_a_killed_worker_held_is_struck_out() -> None:
    board = Board()
    victim, other = serving(board), serving(board)
    held, free = (one.admission_row.slots(2, {}) for one in (victim, other))
    assert held.take("/a", NOW) and held.take("/a", NOW)
    assert not free.take("/a", NOW)
    board.left(SimpleNamespace(), victim)
    assert free.total() == 0
    assert free.take("/a", NOW) and free.take("/a", NOW)
    board.left(SimpleNamespace(), victim)  # told twice
    assert free.total() == 2


def test_workers_that_nobody_reported_are_found_lost() -> None:
    board = Board()
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    lost, living = seated(board), serving(board)
    lost.admission_row.occupy(child, NOW)
    assert lost.admission_row.slots(1, {}).take("/a", NOW)
    fresh = serving(board)
    assert (living.admission_slot, fresh.admission_slot) == (1, 0)
    assert fresh.admission_row.slots(1, {}).total() == 0


def test_each_worker_is_seated_once_and_old_and_new_side_by_side() -> None:
    board = Board()
    old = [seated(board) for _ in range(3)]
    board.seat(old[1])
    new = [seated(board, cfg="reloaded") for _ in range(3)]
    assert [one.admission_slot for one in (*old, *new)] == [0, 1, 2, 3, 4, 5]
    assert board.page.used == 6
    for one in old:
        board.left(SimpleNamespace(), one)
    assert seated(board, cfg="reloaded").admission_slot == 0


def test_a_worker_without_a_place_left_gets_none() -> None:
    board = Board()
    for _ in range(ROWS):
        seated(board)
    last = seated(board)
    assert (last.admission_slot, last.admission_row) == (ROWS, None)
    board.left(SimpleNamespace(), last)
    assert seated(board).admission_slot == ROWS


def test_classes_keep_their_columns_when_others_come(caplog: pytest.LogCaptureFixture) -> None:
    board = Board()
    old = serving(board, "/a", "/b")
    new = serving(board, "/c", "/b")
    slots = old.admission_row.slots(None, {"/b": 1})
    more = new.admission_row.slots(None, {"/b": 1, "/c": 1})
    assert slots.take("/b", NOW)
    assert not more.take("/b", NOW)
    assert more.take("/c", NOW)
    assert not caplog.records
    assert old.admission_row.slots(None, {"/late": 1}) is None
    assert "node_cap of /late" in caplog.text


def test_a_board_belongs_to_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master, "_board", None)
    assert master.board() is master.board()
    mine = master.board()
    monkeypatch.setattr(master, "_board_of", os.getpid() + 1)
    assert master.board() is not mine


# -- being replaced ----------------------------------------------------------------------


def test_only_one_worker_is_replaced_at_a_time() -> None:
    board = Board()
    one, two = serving(board), serving(board)
    assert one.admission_row.claim_recycling(NOW)
    assert not two.admission_row.claim_recycling(NOW)
    board.left(SimpleNamespace(), one)
    assert two.admission_row.claim_recycling(NOW)


def test_two_that_claim_it_at_once_both_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board()
    one, two = (serving(board).admission_row for _ in range(2))
    fence = one._fence

    def meanwhile() -> None:
        board.page.set(Column.RECYCLING, two.number, 1)  # it has looked before our store
        fence()

    monkeypatch.setattr(one, "_fence", meanwhile)
    assert not one.claim_recycling(NOW)
    assert board.page.column(Column.RECYCLING) == [0, 1]


def test_the_pause_until_the_next_doubles_up_to_the_longest_and_is_forgotten() -> None:
    row = Row(Page(), 0, {})
    pauses = []
    now = NOW
    for _ in range(6):
        row.note_recycling(now, 10, 100)
        next_ns = row.page.cells[Head.NEXT_RECYCLE_NS]
        pauses.append(next_ns - now)
        assert not row.claim_recycling(next_ns - 1)
        now = next_ns
    assert pauses == [10, 20, 40, 80, 100, 100]
    now += 200
    row.note_recycling(now, 10, 100)
    assert row.page.cells[Head.NEXT_RECYCLE_NS] == now + 10


def test_a_sibling_is_fresh_if_it_lives_and_began_later() -> None:
    board = Board()
    old, other = serving(board), serving(board)
    assert not old.admission_row.sibling_since(NOW)
    fresh = seated(board)
    assert not old.admission_row.sibling_since(NOW)
    fresh.admission_row.occupy(1, NOW + 5)
    assert old.admission_row.sibling_since(NOW)
    assert not fresh.admission_row.sibling_since(NOW)
    board.left(SimpleNamespace(), fresh)
    assert not other.admission_row.sibling_since(NOW)


class Server:
    """An arbiter's count of workers, which tells of changes as gunicorn does."""

    def __init__(self, board: Board, workers: int, cfg: object = "cfg") -> None:
        self._board = board
        self._count = workers
        self.cfg = cfg

    @property
    def num_workers(self) -> int:
        return self._count

    @num_workers.setter
    def num_workers(self, count: int) -> None:
        before, self._count = self._count, count
        self._board.count_changed(self, count, before)


def asking(board: Board) -> Any:
    one = serving(board)
    board.page.set(Column.ASKED, one.admission_slot, Asked.ASKED)
    return one


def test_the_count_of_workers_is_as_before_when_the_replaced_one_is_gone() -> None:
    board = Board()
    server = Server(board, 2)
    board.count_changed(server, 2, None)  # gunicorn starts
    leaving, staying = asking(board), serving(board)
    server.num_workers += 1  # its SIGTTIN
    board.left(server, staying)
    assert server.num_workers == 3
    board.left(server, leaving)
    assert server.num_workers == 2


def test_users_change_the_count_as_ever() -> None:
    board = Board()
    server = Server(board, 2)
    one = serving(board)
    server.num_workers += 1
    board.left(server, one)
    assert server.num_workers == 3
    server.num_workers -= 1
    assert server.num_workers == 2


def test_a_reload_settles_the_count_itself() -> None:
    board = Board()
    server = Server(board, 2)
    leaving = asking(board)
    server.num_workers += 1
    server.cfg, server.num_workers = "reloaded", 2
    seated(board, cfg="reloaded")
    board.left(server, leaving)
    assert server.num_workers == 2


def test_a_signal_that_comes_after_a_reload_is_void() -> None:
    board = Board()
    server = Server(board, 2)
    leaving = asking(board)
    server.cfg, server.num_workers = "reloaded", 2
    seated(board, cfg="reloaded")
    server.num_workers += 1
    assert server.num_workers == 2
    server.num_workers += 1  # a user's
    assert server.num_workers == 3
    board.left(server, leaving)
    assert server.num_workers == 3
