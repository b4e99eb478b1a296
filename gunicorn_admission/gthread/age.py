"""
The gate of a ``sync`` worker: what has waited for too long is refused instead of run.

Such a worker runs one request at a time and accepts the next one after it, so the queue is
the kernel's backlog, where nobody can be refused. What can be known is how old a request
is once its turn comes: the kernel tells of TCP connections, a trusted proxy of others.
Work for a client that has given up only makes the rest of the queue late as well.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from gunicorn_admission.classify import Classifier, RequestClass
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Priority
from gunicorn_admission.gthread.arrival import waited_ns
from gunicorn_admission.gthread.gate import WorkerGate
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.settings import Settings

__all__ = ["AgeGate"]


class AgeGate(WorkerGate):
    """
    Refuses by age, in a worker that never has more than one request.

    DEFAULT may be ``max_wait`` old, LOW ``low_max_wait``, HIGH as old as its deadline allows,
    since there is nothing else to prefer it by: the backlog is served in its order.

    Args:
        worker, limiter, classifier, settings: See
            :class:`~gunicorn_admission.gthread.gate.WorkerGate`; the limiter has one slot.
    """

    def __init__(
        self, worker: Any, limiter: Limiter, classifier: Classifier, settings: Settings
    ) -> None:
        super().__init__(worker, limiter, classifier, settings)
        policy = limiter.policy
        self._oldest_ns = {
            Priority.DEFAULT: policy.max_wait_ns,
            Priority.LOW: policy.low_max_wait_ns,
        }

    def enter(self, request_class: RequestClass, environ: Mapping[str, Any]) -> Ticket:
        """Decide at once: nothing else runs here, so there is nothing to wait for."""
        now_ns = time.monotonic_ns()
        age_ns = max(waited_ns(environ["gunicorn.socket"]), self.waited_in_front_ns(environ))
        arrived_ns = now_ns - age_ns
        deadline_ns = request_class.policy.deadline_ns
        ticket = Ticket(
            self.limiter.partition(request_class.partition),
            request_class.priority,
            arrived_ns,
            None,
            None if deadline_ns is None else arrived_ns + deadline_ns,
        )
        oldest_ns = self._oldest_ns.get(request_class.priority)
        if oldest_ns is None or age_ns <= oldest_ns or not self.limiter.refuse_late(ticket):
            self.limiter.offer(ticket, now_ns)
        return ticket

    def drain(self, environ: dict[str, Any]) -> bool:
        """As the ordinary gate, within bounds for a client that has stopped sending, too."""
        sock = environ["gunicorn.socket"]
        sock.settimeout(self.settings.drain_timeout or None)
        try:
            return super().drain(environ)
        finally:
            sock.settimeout(None)
