"""Whether it makes sense to send requests to this node, and what its workers do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import asdict

from gunicorn_admission.core.statistics import Statistics
from gunicorn_admission.scoreboard import Row, is_starved, read

__all__ = ["Readiness"]


class Readiness:
    """
    Answers for one worker and, where there is a shared page, for its siblings.

    A worker with too few threads left does not make the node unready as long as a sibling
    has enough: that one takes the connections. Overload does not either: to be sent away
    from an overloaded node only overloads the others. But where hung requests hold nearly
    all that ``node_limit`` allows, no worker can serve, however many threads are left.

    Args:
        statistics: Takes a snapshot of this worker; ``None`` where nothing limits it.
        row: Its row on the shared page.

    Thread safety: any thread.
    """

    def __init__(
        self, statistics: Callable[[], Statistics] | None = None, row: Row | None = None
    ) -> None:
        self._statistics = statistics
        self._row = row

    def __call__(self) -> bool:
        """Whether to send requests here."""
        return self.why_not() is None

    def why_not(self) -> str | None:
        """Return ``"stopping"``, ``"paused"`` or ``"starved"``; ``None`` when ready."""
        if self._statistics is None:
            return None
        now = self._statistics()
        if now.closed:
            return "stopping"
        if now.paused:
            return "paused"
        row = self._row
        if row is None:
            return "starved" if now.starved else None
        if is_starved(now.node_limit, row.stuck()):
            return "starved"
        if now.starved and not any(
            worker.pid and worker.ready and worker.slot != row.number for worker in read(row.page)
        ):
            return "starved"
        return None

    def figures(self) -> dict[str, Any]:
        """Return what is known of the node, as JSON can hold it."""
        row = self._row
        data: dict[str, Any] = {"ready": self()}
        if self._statistics is not None:
            now = self._statistics()
            data["worker"] = {
                "slot": None if row is None else row.number,
                "mode": now.mode,
                "limit": now.limit,
                "inflight": now.inflight,
                "waiting": now.waiting,
                "overloaded": now.overloaded,
                "stuck": now.stuck,
                "threads": now.max_limit,
                "threads_left": now.threads_left,
                "ready": now.ready,
            }
            if now.node_limit:
                data["node"] = {"limit": now.node_limit, "inflight": now.node_inflight}
        if row is not None:
            data["workers"] = [asdict(worker) for worker in read(row.page)]
        return data
