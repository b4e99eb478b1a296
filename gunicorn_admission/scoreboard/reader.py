"""Reading the page: the workers of the node as they are now."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from gunicorn_admission.scoreboard.page import Column, Fence, Page

__all__ = ["WorkerFigures", "read"]

_ATTEMPTS: Final = 8


@frozen(kw_only=True)
class WorkerFigures:
    """
    One place on the page.

    Attributes:
        slot: Number of the place, from 0; a recycled worker has that of its predecessor.
        pid: Process id; 0 when nobody has the place now, and only the totals are left.
        generation: How many workers have had it.
        limit, inflight, waiting: As in ``Statistics``.
        threads, threads_left: Most requests at once, and how many threads do not hang.
        ready: Whether it can take requests.
        arrivals, admitted, shed: Totals of all that have had this place; they never fall.
        recycling: It is being replaced because it hangs.
        whole: The figures belong together; not so where their writer was killed or is
            stopped in the middle.
    """

    slot: int
    pid: int
    generation: int
    limit: int
    inflight: int
    waiting: int
    threads: int
    threads_left: int
    ready: bool
    arrivals: int
    admitted: int
    shed: int
    recycling: bool
    whole: bool


def read(page: Page) -> tuple[WorkerFigures, ...]:
    """
    Return every place that was ever used.

    Thread safety: any thread of any process that has the page.
    """
    fence = Fence()
    return tuple(_read(page, row, fence) for row in range(page.used))


def _read(page: Page, row: int, fence: Fence) -> WorkerFigures:
    whole = False
    for _ in range(_ATTEMPTS):
        before = page.get(Column.SEQUENCE, row)
        fence()
        cells = [page.get(column, row) for column in range(Column.ASKED)]
        fence()
        whole = before % 2 == 0 and page.get(Column.SEQUENCE, row) == before
        if whole:
            break
    return WorkerFigures(
        slot=row,
        pid=cells[Column.PID],
        generation=cells[Column.GENERATION],
        limit=cells[Column.LIMIT],
        inflight=cells[Column.INFLIGHT],
        waiting=cells[Column.WAITING],
        threads=cells[Column.THREADS],
        threads_left=cells[Column.THREADS_LEFT],
        ready=bool(cells[Column.READY]),
        arrivals=cells[Column.ARRIVALS],
        admitted=cells[Column.ADMITTED],
        shed=cells[Column.SHED],
        recycling=bool(cells[Column.RECYCLING]),
        whole=whole,
    )
