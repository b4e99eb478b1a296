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
        request_class: By the request line; ``None`` while it is not known.
        outcome: What the gate saw; IGNORE when the request never got that far.
        lane_ns: When it was put into the shed lane.
    """

    __slots__ = ("conn", "future", "handle", "lane_ns", "outcome", "request_class")

    def __init__(
        self,
        partition: Partition,
        arrived_ns: int,
        decided: Callable[[Any], None],
        handle: Callable[[Any], Any],
        conn: Any,
        future: Any,
    ) -> None:
        super().__init__(partition, Priority.DEFAULT, arrived_ns, None, None, decided)
        self.handle = handle
        self.conn = conn
        self.future = future
        self.request_class: RequestClass | None = None
        self.outcome = Outcome.IGNORE
        self.lane_ns = 0

    def become(self, request_class: RequestClass, partition: Partition) -> None:
        """Take the class that the request turned out to have; before it is offered."""
        self.request_class = request_class
        self.partition = partition
        self.priority = request_class.priority
        deadline_ns = request_class.policy.deadline_ns
        if deadline_ns is not None:
            self.deadline_ns = self.arrived_ns + deadline_ns
