"""
Several processes race for the slots of one node; the kernel counts beside us.

Whoever has taken a slot also takes a record lock on one byte of a file that has as many
bytes as the bound allows. The kernel gives a byte to one process only and frees it when
that process dies, so a process that has a slot and finds no free byte proves that the
bound was passed.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gunicorn_admission.scoreboard import Board
from gunicorn_admission.scoreboard.page import Column

pytestmark = pytest.mark.stress

LIMIT = 3
PROCESSES = 6
ROUNDS = 1500


def race(row: Any, path: Path, rounds: int) -> int:
    """Take and give slots; the number of those taken, or -1 if one was too many."""
    slots = row.slots(LIMIT, {})
    row.occupy(os.getpid(), 1)
    taken = 0
    with path.open("r+b") as file:
        for _ in range(rounds):
            if not slots.take("/", time.monotonic_ns()):
                continue
            taken += 1
            for byte in range(LIMIT):
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
                    break
                except OSError:
                    continue
            else:
                return -1
            time.sleep(1e-6)  # with fewer cores than processes nobody else would run meanwhile
            fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)
            slots.give("/")
    return taken


def fork(row: Any, path: Path, rounds: int) -> tuple[int, int]:
    """Race in a child; its pid, and where its result can be read."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: there are threads here
        pid = os.fork()
    if not pid:
        try:
            os.write(writing, b"%d" % race(row, path, rounds))
        finally:
            os._exit(0)
    os.close(writing)
    return pid, reading


def test_the_bound_is_never_passed_and_no_slot_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "locks"
    path.write_bytes(bytes(LIMIT))
    board = Board()
    workers: list[Any] = [SimpleNamespace(cfg=None) for _ in range(PROCESSES)]
    for worker in workers:
        board.seat(worker)
    children = [fork(worker.admission_row, path, ROUNDS) for worker in workers]
    results = []
    for pid, reading in children:
        results.append(int(os.read(reading, 20)))
        os.close(reading)
        os.waitpid(pid, 0)
    assert -1 not in results, "more ran than the bound allows"
    assert sum(results) > ROUNDS // 10, "hardly anybody got a slot"
    assert workers[0].admission_row.slots(LIMIT, {}).total() == 0


def test_no_slot_is_lost_with_those_that_are_killed(tmp_path: Path) -> None:
    path = tmp_path / "locks"
    path.write_bytes(bytes(LIMIT))
    board = Board()
    for number in range(20):
        worker: Any = SimpleNamespace(cfg=None)
        board.seat(worker)
        pid, reading = fork(worker.admission_row, path, 10**9)
        page = board.page
        deadline = time.monotonic() + 10
        # Killed in the middle of it, at another place each time.
        while not any(page.column(Column.FIRST_BOUND)) and time.monotonic() < deadline:
            pass
        for _ in range(37 * number):
            pass
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)
        board.left(SimpleNamespace(cfg=None), worker)
    assert page.used == 1
    last: Any = SimpleNamespace(cfg=None)
    board.seat(last)
    slots = last.admission_row.slots(LIMIT, {})
    assert [slots.take("/", 1) for _ in range(LIMIT + 1)] == [True] * LIMIT + [False]
