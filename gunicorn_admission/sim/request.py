"""One attempt of a client, as the worker sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome

if TYPE_CHECKING:
    from gunicorn_admission.sim.worker import Worker

__all__ = ["Event", "Request"]


class Event:
    """
    What a client wants done, however many attempts it takes.

    Attributes:
        kind: Index of its class.
        phase: Index of the phase in which it was first sent.
        attempts: How often it was sent so far.
        slice: Slice of the timeline in which it was first sent.
        tried: Workers that have turned the present attempt down.
    """

    __slots__ = ("attempts", "kind", "phase", "slice", "tried")

    def __init__(self, kind: int, phase: int) -> None:
        self.kind = kind
        self.phase = phase
        self.attempts = 0
        self.slice = 0
        self.tried: list[Worker] = []


class Request(Ticket):
    """
    A ticket that knows who sent it.

    Attributes:
        event: What it is an attempt at.
        gone_ns: When its client gives this attempt up.
        outcome: What the handler will end with.
        failed: The answer is an error.
        answered: The client has an answer, or has given up.
        worker: Where it went.
    """

    __slots__ = ("answered", "event", "failed", "gone_ns", "outcome", "worker")

    def __init__(self, event: Event, worker: Worker, now_ns: int, gone_ns: int) -> None:
        partition = worker.partitions[event.kind]
        deadline_ns = partition.policy.deadline_ns
        if deadline_ns is not None:
            deadline_ns += now_ns
        super().__init__(partition, partition.policy.priority, now_ns, None, deadline_ns)
        self.event = event
        self.worker = worker
        self.gone_ns = gone_ns
        self.outcome = Outcome.SUCCESS
        self.failed = False
        self.answered = False
