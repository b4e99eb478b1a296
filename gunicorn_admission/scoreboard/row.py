"""A worker's row: what it writes there, and the token for being replaced."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from gunicorn_admission.core.statistics import Statistics
from gunicorn_admission.scoreboard.page import Column, Fence, Head, Page
from gunicorn_admission.scoreboard.slots import NodeSlots

__all__ = ["Row"]

_log = logging.getLogger("gunicorn_admission")
_TOTALS: Final = (Column.ARRIVALS, Column.ADMITTED, Column.SHED)


class Row:
    """
    Writes one row of the page.

    Made by the master; used by the worker that was forked with it.

    Args:
        page: Shared with master and siblings.
        number: The row.
        columns: Numbers of the bounds of classes, by class name.

    Thread safety: :meth:`publish` for one thread, :meth:`claim_recycling` for one thread.
    """

    def __init__(self, page: Page, number: int, columns: Mapping[str, int]) -> None:
        self.page: Final = page
        self.number: Final = number
        self._columns = dict(columns)
        self._fence = Fence()
        self._inherited = [0] * len(_TOTALS)

    def occupy(self, pid: int, now_ns: int) -> None:
        """Begin to serve. Totals go on from those of whoever had the place before."""
        self._inherited = [self.page.get(column, self.number) for column in _TOTALS]
        self.page.set(Column.PID, self.number, pid)
        self.page.set(Column.SERVING_NS, self.number, now_ns)
        self.page.set(Column.READY, self.number, 1)

    def slots(self, limit: int | None, caps: Mapping[str, int]) -> NodeSlots | None:
        """
        Return the bounds that are shared with the siblings; ``None`` without any.

        Args:
            limit: Over all classes.
            caps: By class name. The master has set columns aside for those that it knew.
        """
        unknown = sorted(caps.keys() - self._columns.keys())
        if unknown:
            _log.warning(
                "admission: node_cap of %s holds for each worker alone until gunicorn is started "
                "anew: there is no place for it on the page that the workers share",
                ", ".join(unknown),
            )
        known = {
            name: (cap, self._columns[name]) for name, cap in caps.items() if name not in unknown
        }
        if limit is None and not known:
            return None
        return NodeSlots(self.page, self.number, limit, known)

    def publish(self, statistics: Statistics) -> None:
        """Write the figures so that a reader sees all of them or notices."""
        page, number, s = self.page, self.number, statistics
        totals = (s.arrivals, s.granted, s.shed_total)
        sequence = page.get(Column.SEQUENCE, number) | 1
        page.set(Column.SEQUENCE, number, sequence)
        self._fence()
        for column, value in (
            (Column.LIMIT, s.limit),
            (Column.INFLIGHT, s.inflight),
            (Column.WAITING, s.waiting),
            (Column.THREADS, s.max_limit),
            (Column.THREADS_LEFT, s.threads_left),
            (Column.READY, int(s.ready)),
            *zip(_TOTALS, map(sum, zip(self._inherited, totals, strict=True)), strict=True),
        ):
            page.set(column, number, value)
        self._fence()
        page.set(Column.SEQUENCE, number, sequence + 1)

    def stuck(self) -> list[int]:
        """Return how many requests hang, for each living worker of the node."""
        page = self.page
        columns = (Column.PID, Column.THREADS, Column.THREADS_LEFT)
        rows = zip(*map(page.column, columns), strict=False)
        return [threads - left for pid, threads, left in rows if pid]

    # -- being replaced --------------------------------------------------------------

    def claim_recycling(self, now_ns: int) -> bool:
        """Become the one worker of the node that is being replaced; at most one ever is."""
        page = self.page
        if now_ns < page.cells[Head.NEXT_RECYCLE_NS] or any(page.column(Column.RECYCLING)):
            return False
        page.set(Column.RECYCLING, self.number, 1)
        self._fence()
        if sum(page.column(Column.RECYCLING)) > 1:
            page.set(Column.RECYCLING, self.number, 0)  # both give way, and ask again later
            return False
        return True

    def note_recycling(self, now_ns: int, pause_ns: int, longest_ns: int) -> None:
        """
        Put off the next replacement, longer each time that the last one did not help.

        Args:
            now_ns: Present time.
            pause_ns: From this one to the next; doubled each time in a row.
            longest_ns: No pause is longer. After twice that long without a replacement
                the next one counts as the first again.
        """
        cells = self.page.cells
        again = cells[Head.RECYCLES] and now_ns - cells[Head.RECYCLED_NS] < 2 * longest_ns
        times = cells[Head.RECYCLES] + 1 if again else 1
        cells[Head.RECYCLES] = times
        cells[Head.RECYCLED_NS] = now_ns
        pause_ns = min(pause_ns << min(times - 1, 20), longest_ns)
        cells[Head.NEXT_RECYCLE_NS] = now_ns + pause_ns

    def sibling_since(self, since_ns: int) -> bool:
        """Whether another worker has begun to serve since then, and lives."""
        serving = self.page.column(Column.SERVING_NS)
        pids = self.page.column(Column.PID)
        return any(
            pid and at_ns > since_ns and row != self.number
            for row, (pid, at_ns) in enumerate(zip(pids, serving, strict=False))
        )
