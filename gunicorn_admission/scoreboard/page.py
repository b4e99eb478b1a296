"""
The page itself: a grid of 64-bit integers in memory that master and workers share.

A column is a figure, a row is a worker's place. Each cell has one writer, is aligned, and
is stored by one machine instruction, so that a value is never torn. (That is what the
native format does. ``struct`` with ``"<q"`` would store byte by byte.)

Nobody ever locks anything here: a process may be stopped or killed at any instruction, or
lose the interpreter to another thread for milliseconds, and must not hold up the others.
"""

from __future__ import annotations

import mmap
import sys
import threading
from typing import Any, Final

__all__ = ["BOUNDS", "COLUMNS", "ROWS", "Column", "Fence", "Head", "Page"]

#: Places for workers: 8 bytes a column each, and memory only where it is written. A reload
#: runs old and new workers together, and takes two places a worker for that time.
ROWS: Final = 512
#: Bounds that the workers of a node may share: one for all, the others for classes.
BOUNDS: Final = 16


class Column:
    """What stands in which column."""

    #: Cells that belong to the master or to nobody: see :class:`Head`.
    HEAD: Final = 0
    #: Process id; 0 for a place that nobody has.
    PID: Final = 1
    #: How many workers have had this place.
    GENERATION: Final = 2
    #: When its worker was ready to serve, in monotonic nanoseconds; 0 before.
    SERVING_NS: Final = 3
    #: Odd while the figures from LIMIT to SHED are being written.
    SEQUENCE: Final = 4
    LIMIT: Final = 5
    INFLIGHT: Final = 6
    WAITING: Final = 7
    #: The most requests that may run at once, and how many of these threads do not hang.
    THREADS: Final = 8
    THREADS_LEFT: Final = 9
    READY: Final = 10
    #: Totals of all workers that have had this place.
    ARRIVALS: Final = 11
    ADMITTED: Final = 12
    SHED: Final = 13
    #: 1 for the one worker that is being replaced because it hangs.
    RECYCLING: Final = 14
    #: How far the master is with that: see ``Asked`` in ``master.py``.
    ASKED: Final = 15
    #: From here on, for each bound: slots held; when a slot was last looked for in vain.
    FIRST_BOUND: Final = 16


class Head:
    """Cells of the column HEAD."""

    #: Rows in use are below this; it only grows.
    USED: Final = 0
    #: Replacements of hung workers: the last one, how many in a row, and the earliest next.
    RECYCLED_NS: Final = 1
    RECYCLES: Final = 2
    NEXT_RECYCLE_NS: Final = 3


COLUMNS: Final = Column.FIRST_BOUND + 2 * BOUNDS


class Fence:
    """
    Calling it keeps loads that follow from being done before stores that precede.

    Processors delay a store behind later loads. To release and take again a lock that
    nobody else wants is a full barrier on x86 (a locked instruction), and keeps the order
    on ARMv8 (an acquire behind a release), for 60 ns.

    Thread safety: none; each thread, or what its own lock guards, has one of its own.
    """

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        # gevent's own locks are no barrier.
        gevent: Any = sys.modules.get("gevent.monkey")
        allocate = gevent.get_original("threading", "Lock") if gevent else threading.Lock
        self._lock = allocate()
        self._lock.acquire()

    def __call__(self) -> None:
        """Put a barrier here."""
        self._lock.release()
        self._lock.acquire()


class Page:
    """
    Cells in memory that survives its processes only as long as one of them lives.

    Made by the master before it forks; a worker that is forked later sees the same cells.

    Args:
        used: How many rows are in use from the start.

    Attributes:
        cells: All of them, column by column.

    Thread safety: single loads and stores are atomic; who may write what is said above.
    """

    def __init__(self, used: int = 0) -> None:
        self.cells: Final[memoryview] = memoryview(mmap.mmap(-1, 8 * ROWS * COLUMNS)).cast("q")
        self.cells[Head.USED] = used

    def get(self, column: int, row: int) -> int:
        """Return one cell."""
        value: int = self.cells[column * ROWS + row]
        return value

    def set(self, column: int, row: int, value: int) -> None:
        """Store one cell."""
        self.cells[column * ROWS + row] = value

    @property
    def used(self) -> int:
        """How many rows have ever been used."""
        value: int = self.cells[Head.USED]
        return value

    def column(self, column: int) -> list[int]:
        """Return a column, as far as rows are used."""
        start = column * ROWS
        values: list[int] = self.cells[start : start + self.used].tolist()
        return values
