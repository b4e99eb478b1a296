"""A connection with a request on it, waiting for a thread or running in one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gunicorn_admission.classify import RequestClass
from gunicorn_admission.core.partition import Partition
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome, Priority

__all__ = ["Job"]


class Job(Ticket):
    """
    A ticket that knows its connection.

    Attributes:
        handle: gunicorn's ``worker.handle``.
        conn: Its connection object.
        future: What ``submit`` returned.
        request_class: By the request line; ``None`` while only the parser can tell.
        outcome: What the gate saw; IGNORE when the request never got that far.
        lane_ns: When it was put into the shed lane.
    """

    __slots__ = ("conn", "future", "handle", "lane_ns", "outcome", "request_class")

    def __init__(
        self,
        partition: Partition,
        priority: Priority,
        arrived_ns: int,
        deadline_ns: int | None,
        decided: Callable[[Any], None],
        handle: Callable[[Any], Any],
        conn: Any,
        future: Any,
        request_class: RequestClass | None,
    ) -> None:
        super().__init__(partition, priority, arrived_ns, None, deadline_ns, decided)
        self.handle = handle
        self.conn = conn
        self.future = future
        self.request_class = request_class
        self.outcome = Outcome.IGNORE
        self.lane_ns = 0
