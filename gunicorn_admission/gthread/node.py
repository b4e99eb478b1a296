"""A worker among its siblings: the bounds they share, and being replaced when it hangs."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Any

from gunicorn_admission.gthread.recycle import Recycler
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.scoreboard import Page, Row
from gunicorn_admission.settings import Settings
from gunicorn_admission.settings.derive import Resolved
from gunicorn_admission.settings.durations import to_ns

__all__ = ["join"]

_log = logging.getLogger("gunicorn_admission")


def join(worker: Any, limiter: Limiter, settings: Settings, resolved: Resolved) -> None:
    """
    Take the worker's place on the page that the master made, and obey what holds for all.

    Without a place (the master had no part in it) the bounds are divided by the number of
    workers, which keeps them, though not as well; and nobody can be replaced.
    """
    row: Row | None = getattr(worker, "admission_row", None)
    limit = settings.node_limit
    caps = {p.name: p.node_cap for p in resolved.partitions if p.node_cap is not None}
    rounds = [_close_when_stopping(worker, limiter)]
    if row is not None:
        row.occupy(os.getpid(), time.monotonic_ns())
        slots = row.slots(limit, caps)
        if settings.recycle_after is not None and settings.mode == "enforce":
            after_ns = to_ns(settings.recycle_after)
            recycler = Recycler(worker, row, limiter, after_ns, limit or 0, time.monotonic_ns)
            rounds.append(recycler.look)
    else:
        workers = max(1, worker.cfg.workers)
        part = None if limit is None else max(1, limit // workers)
        caps = {name: max(1, cap // workers) for name, cap in caps.items()}
        columns = {name: number for number, name in enumerate(caps, 1)}
        slots = Row(Page(used=1), 0, columns).slots(part, caps)
        if slots is not None or settings.recycle_after is not None:
            _log.warning(
                "admission: the workers share no page, so each takes its part of node_limit and "
                "node_cap, and none is replaced; call install(globals()) in gunicorn's "
                "configuration, or use -k gunicorn_admission.worker.AdmissionWorker"
            )
    if slots is not None:
        limiter.share(slots)
    limiter.each_round = _one_after_another(rounds)


def _close_when_stopping(worker: Any, limiter: Limiter) -> Callable[[], None]:
    def look() -> None:
        # A worker that stops answers whom it keeps waiting rather than let them hang.
        if not worker.alive:
            limiter.close()

    return look


def _one_after_another(rounds: list[Callable[[], None]]) -> Callable[[], None]:
    def look() -> None:
        for each in tuple(rounds):
            try:
                each()
            except Exception:
                rounds.remove(each)  # what fails must not keep requests from expiring
                _log.exception("admission: %r failed and is left out from now on", each)

    return look
