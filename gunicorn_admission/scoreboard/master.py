"""
The master's part: who sits where, and what happens to the place of one who is gone.

A worker keeps its place for life; whoever replaces it gets the same one if it is free, and
the totals go on from there. What a worker held when it was killed is struck out as soon as
the master has noticed, which is at once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Any, Final

from gunicorn_admission.scoreboard.page import BOUNDS, COLUMNS, ROWS, Column, Head, Page
from gunicorn_admission.scoreboard.row import Row

__all__ = ["Asked", "Board", "board"]

_log = logging.getLogger("gunicorn_admission")
_KEPT: Final = (Column.GENERATION, Column.ARRIVALS, Column.ADMITTED, Column.SHED)


class Asked:
    """How far the master is with a worker that asked for its successor by SIGTTIN."""

    #: Not at all.
    NOT: Final = 0
    #: The worker is about to send the signal.
    ASKED: Final = 1
    #: The signal came, so there is one worker too many until that one is gone.
    GRANTED: Final = 2
    #: A reload has replaced all workers meanwhile; a signal that comes yet is void.
    VOID: Final = 3


class Board:
    """
    Hands out the rows of one page.

    Thread safety: the master's main thread.
    """

    def __init__(self) -> None:
        self.page: Final = Page()
        self._seated: dict[int, Any] = {}
        self._columns: dict[str, int] = {}
        self._cfg: Any = None

    def seat(self, worker: Any, classes: Iterable[str] = ()) -> None:
        """
        Give a worker that is about to be forked its place; a second call changes nothing.

        It is left in ``worker.admission_slot``, a number, and ``worker.admission_row``.

        Args:
            worker: gunicorn's.
            classes: Names of the classes that share a bound between workers.
        """
        if getattr(worker, "admission_slot", None) is not None:
            return
        if worker.cfg is not self._cfg:
            self._cfg = worker.cfg
            self._void()
        self._strike_out_lost()
        slot = 0
        while slot in self._seated:
            slot += 1
        self._seated[slot] = worker
        worker.admission_slot = slot
        worker.admission_row = None
        if slot >= ROWS:
            return
        for name in classes:
            if name not in self._columns and len(self._columns) < BOUNDS - 1:
                self._columns[name] = len(self._columns) + 1
        page = self.page
        self._clear(slot)
        page.set(Column.GENERATION, slot, page.get(Column.GENERATION, slot) + 1)
        page.cells[Head.USED] = max(page.used, slot + 1)
        worker.admission_row = Row(page, slot, self._columns)

    def left(self, server: Any, worker: Any) -> None:
        """A worker has ended, in whatever way; for ``child_exit``."""
        slot = getattr(worker, "admission_slot", -1)
        if slot not in self._seated or self._seated[slot] is not worker:
            return  # one of another master's, or struck out already
        asked = self.page.get(Column.ASKED, slot) if slot < ROWS else Asked.NOT
        self._strike_out(slot)
        if asked == Asked.GRANTED and worker.cfg is server.cfg and server.num_workers > 1:
            server.num_workers -= 1

    def count_changed(self, server: Any, new: int, old: int | None) -> None:
        """The master wants more or fewer workers; for ``nworkers_changed``."""
        if old is None or new != old + 1:
            return
        for row, asked in enumerate(self.page.column(Column.ASKED)):
            if asked == Asked.ASKED:
                self.page.set(Column.ASKED, row, Asked.GRANTED)
                return
            if asked == Asked.VOID:
                self.page.set(Column.ASKED, row, Asked.NOT)
                server.num_workers = old
                return

    def _void(self) -> None:
        """A new configuration has its own number of workers."""
        for row, asked in enumerate(self.page.column(Column.ASKED)):
            if asked:
                void = Asked.VOID if asked == Asked.ASKED else Asked.NOT
                self.page.set(Column.ASKED, row, void)

    def _strike_out_lost(self) -> None:
        """Free the places of workers of whose end nobody was told."""
        for slot in list(self._seated):
            pid = self.page.get(Column.PID, slot) if slot < ROWS else 0
            if pid:
                try:
                    os.kill(pid, 0)
                except ProcessLookupError:
                    self._strike_out(slot)
                except OSError:
                    pass  # it lives, under another user

    def _strike_out(self, slot: int) -> None:
        del self._seated[slot]
        if slot < ROWS:
            self._clear(slot)

    def _clear(self, row: int) -> None:
        for column in range(1, COLUMNS):
            if column not in _KEPT:
                self.page.set(column, row, 0)


_board: Board | None = None
_board_of = 0


def board() -> Board:
    """
    Return the board of this master, made on the first call.

    It lives as long as the process: a reload reads the configuration again, not this
    module. To be called before the first worker is forked.
    """
    global _board, _board_of
    if _board is None or _board_of != os.getpid():
        _board, _board_of = Board(), os.getpid()
    return _board
