"""
Replacing a worker whose threads hang, without a moment in which there is one less.

Threads that are blocked for ever never come back, so a worker that has lost most of them
stays slow until it ends. It asks the master for one more worker (SIGTTIN), waits until that
one serves, and then stops gracefully as after SIGTERM; when it is gone, the master counts
as before. The page that the workers share holds the token for it, so only one worker of
the node is ever being replaced, and the pause until the next one, which doubles each time:
where the fresh worker hangs as well, replacing was no help.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from typing import Any, Final

from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.limiter.hung import hung
from gunicorn_admission.scoreboard import Row, is_starved
from gunicorn_admission.scoreboard.master import Asked
from gunicorn_admission.scoreboard.page import Column

__all__ = ["Recycler"]

_log = logging.getLogger("gunicorn_admission")
_LONGEST_PAUSE_NS: Final = 3600 * SECOND


class Recycler:
    """
    Watches one worker and has it replaced when it hangs.

    Args:
        worker: gunicorn's.
        row: Its row on the shared page.
        limiter: Knows what hangs.
        after_ns: Age from which a request counts.
        node_limit: Bound over all workers of the node; 0 for none.
        clock: Monotonic nanoseconds, the same in all workers.
        kill: ``os.kill`` or a stand-in.

    Thread safety: one thread, the limiter's watchdog.
    """

    def __init__(
        self,
        worker: Any,
        row: Row,
        limiter: Limiter,
        after_ns: int,
        node_limit: int,
        clock: Callable[[], int],
        kill: Callable[[int, int], None] = os.kill,
    ) -> None:
        self._worker = worker
        self._row = row
        self._limiter = limiter
        self._after_ns = after_ns
        self._node_limit = node_limit
        self._clock = clock
        self._kill = kill
        self._asked_ns = 0
        self._leaving = False

    def look(self) -> None:
        """Take the next step, if there is one to take."""
        if self._leaving or not self._worker.alive:
            return
        now_ns = self._clock()
        if self._asked_ns:
            if self._row.sibling_since(self._asked_ns):
                self._leave("a fresh worker serves; this one finishes what it can and ends")
            return
        policy = self._limiter.policy
        lost = len(hung(self._limiter, self._after_ns))
        starved = policy.max_limit - lost <= policy.min_limit or self._starves_node(lost)
        if not (lost and starved and self._row.claim_recycling(now_ns)):
            return
        self._row.note_recycling(now_ns, self._after_ns, max(self._after_ns, _LONGEST_PAUSE_NS))
        self._asked_ns = now_ns
        self._ask(lost, policy.max_limit)

    def _starves_node(self, lost: int) -> bool:
        """Whether hung requests hold what all workers may hold, and here most of it."""
        stuck = self._row.stuck()
        return lost >= max(stuck, default=0) and is_starved(self._node_limit, stuck)

    def _ask(self, lost: int, threads: int) -> None:
        _log.warning(
            "admission: %d of %d requests have hung for %g s; asking for a fresh worker",
            lost, threads, self._after_ns / SECOND,
        )  # fmt: skip
        page, number = self._row.page, self._row.number
        page.set(Column.ASKED, number, Asked.ASKED)
        try:
            if os.getppid() != self._worker.ppid:
                raise ProcessLookupError
            self._kill(self._worker.ppid, signal.SIGTTIN)
        except OSError:
            # Workers of another user than the master may not signal it.
            page.set(Column.ASKED, number, Asked.NOT)
            self._leave(
                "the master cannot be asked for a fresh worker first (another user?); "
                "this one ends, and is replaced then"
            )

    def _leave(self, why: str) -> None:
        self._leaving = True
        _log.warning("admission: %s", why)
        self._kill(os.getpid(), signal.SIGTERM)
