"""
One bound for all workers of a node, without a lock between them.

Each worker counts what it holds in a cell of its own. To take a slot it first raises its
count and then adds up everybody's; if that is more than the bound, it lowers its count
again. Of several that do so at once, whoever raised last sees all the others, so the bound
is never passed; at worst two refuse one another the last slot, and ask again.

A slot that comes free goes to whoever asks next, and that is mostly the worker that freed
it. So a worker that already has its part of the bound leaves the last slots to those that
have less and have lately asked in vain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from gunicorn_admission.core.policy import MILLISECOND
from gunicorn_admission.scoreboard.page import ROWS, Column, Fence, Head, Page

__all__ = ["NodeSlots", "is_starved"]

#: Who waits for a slot asks every 10 ms.
_WANTED_NS: Final = 25 * MILLISECOND
_ATTEMPTS: Final = 3


def is_starved(limit: int, stuck: Iterable[int]) -> bool:
    """
    Tell whether requests that hang hold nearly all that the workers may hold together.

    Args:
        limit: What they may hold; 0 for no bound.
        stuck: How many hang in each worker. An eighth that is left is too little, as it is
            of the threads of one worker.
    """
    lost = sum(stuck)
    return limit > 0 and lost > 0 and limit - lost <= -(-limit // 8)


class NodeSlots:
    """
    A :class:`~gunicorn_admission.core.shared.SharedBound` over the workers of a node.

    Args:
        page: Shared with them.
        row: This worker's.
        limit: Bound over all classes; ``None`` for none.
        caps: Bound of a class by name, and the number of its columns (1 to BOUNDS - 1).

    Thread safety: guarded by the limiter's lock.
    """

    def __init__(
        self, page: Page, row: int, limit: int | None, caps: Mapping[str, tuple[int, int]]
    ) -> None:
        self._page = page
        self._limit = limit
        fence = Fence()
        self._all = _Bound(page, row, 0, limit, fence) if limit is not None else None
        self._caps = {name: _Bound(page, row, n, cap, fence) for name, (cap, n) in caps.items()}

    def take(self, name: str, now_ns: int) -> bool:
        """Count one request of that class, if it has room; never beyond the bound."""
        everybody, own = self._all, self._caps.get(name)
        if everybody is not None and not everybody.take(now_ns):
            return False
        if own is None or own.take(now_ns):
            return True
        if everybody is not None:
            everybody.add(-1)
        return False

    def has_room(self, name: str, now_ns: int) -> bool:
        """Whether :meth:`take` would probably succeed; leaves word that somebody asks."""
        everybody, own = self._all, self._caps.get(name)
        return (everybody is None or everybody.has_room(now_ns)) and (
            own is None or own.has_room(now_ns)
        )

    def force(self, name: str) -> None:
        """Count one request of that class, whatever the bound says."""
        self._add(name, 1)

    def give(self, name: str) -> None:
        """Take back what has been counted."""
        self._add(name, -1)

    def move(self, old: str, new: str, now_ns: int, *, force: bool) -> bool:
        """Count a request under another class; without ``force`` only if that has room."""
        before, after = self._caps.get(old), self._caps.get(new)
        if before is after:
            return True
        if after is not None:
            if force:
                after.add(1)
            elif not after.take(now_ns):
                return False
        if before is not None:
            before.add(-1)
        return True

    def bound(self) -> int:
        """The bound over all classes; 0 for none."""
        return self._limit or 0

    def total(self) -> int:
        """What all workers hold together now; 0 without a bound over all."""
        return 0 if self._all is None else self._all.total()

    def _add(self, name: str, n: int) -> None:
        if self._all is not None:
            self._all.add(n)
        own = self._caps.get(name)
        if own is not None:
            own.add(n)


class _Bound:
    """One bound: a column of counts, and a column of when somebody last asked in vain."""

    __slots__ = (
        "_cells",
        "_fence",
        "_full",
        "_limit",
        "_page",
        "_place",
        "_row",
        "_start",
        "_wanted",
    )

    def __init__(self, page: Page, row: int, number: int, limit: int, fence: Fence) -> None:
        first = Column.FIRST_BOUND + 2 * number
        self._page = page
        self._cells = page.cells
        self._fence = fence
        self._row = row
        self._limit = limit
        self._start = first * ROWS
        self._place = self._start + row
        self._wanted = (first + 1) * ROWS + row
        self._full = False

    def total(self) -> int:
        cells, start = self._cells, self._start
        counts: list[int] = cells[start : start + cells[Head.USED]].tolist()
        return sum(counts)

    def add(self, n: int) -> None:
        self._cells[self._place] += n

    def take(self, now_ns: int) -> bool:
        cells, place = self._cells, self._place
        for _ in range(_ATTEMPTS):
            # After a refusal it is looked at first, so that those who are refused again and
            # again do not stand in the way of others by raising their counts.
            if self._full and not self.has_room(now_ns):
                return False
            cells[place] += 1
            self._fence()
            free = self._limit - self.total()
            if free > cells[Head.USED] or (free >= 0 and not self._is_owed(free + 1, 1, now_ns)):
                if self._full:
                    self._full = False
                    cells[self._wanted] = 0
                return True
            cells[place] -= 1
            self._full = True
        cells[self._wanted] = now_ns
        return False

    def has_room(self, now_ns: int) -> bool:
        free = self._limit - self.total()
        if free > 0 and not self._is_owed(free, 0, now_ns):
            return True
        self._full = True
        self._cells[self._wanted] = now_ns
        return False

    def _is_owed(self, free: int, taken: int, now_ns: int) -> bool:
        """Whether the last free slots are for workers that have less than their part."""
        page = self._page
        if free > self._cells[Head.USED]:
            return False
        own = self._cells[self._place] - taken
        part = max(1, self._limit // max(1, sum(map(bool, page.column(Column.PID)))))
        if own < part:
            return False
        column = self._start // ROWS
        counts, wanted = page.column(column), page.column(column + 1)
        owed = sum(
            now_ns - since_ns < _WANTED_NS and count < part
            for row, (count, since_ns) in enumerate(zip(counts, wanted, strict=False))
            if since_ns and row != self._row
        )
        return free <= owed
