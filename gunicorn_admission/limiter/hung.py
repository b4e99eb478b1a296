"""Which requests hang, for those who show where, or have the worker replaced."""

from __future__ import annotations

from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.limiter.tickets import TicketLimiter

__all__ = ["hung", "stuck"]


def hung(limiter: TicketLimiter, age_ns: int) -> list[Ticket]:
    """
    Return what has been running for so long without a first byte of its answer.

    Oldest first inside a class. A stream that has begun to answer is at work.

    Thread safety: may be called from any thread.
    """
    found = []
    with limiter._lock:
        now_ns = limiter._clock()
        for partition in limiter._controller.shares:
            for ticket in partition.running:
                if now_ns - ticket.granted_ns < age_ns:
                    break
                if not ticket.sampled_at_ns:
                    found.append(ticket)
    return found


def stuck(limiter: TicketLimiter) -> list[tuple[Ticket, int]]:
    """
    Return what is past the stall age of its class, with its age in nanoseconds.

    As :func:`hung`, with the age that the limiter goes by itself.
    """
    found = []
    with limiter._lock:
        now_ns = limiter._clock()
        controller = limiter._controller
        for partition in controller.shares:
            bound_ns = controller.stalls.age_bound_ns(partition)
            for ticket in partition.running:
                age_ns = now_ns - ticket.granted_ns
                if age_ns < bound_ns:
                    break
                if not ticket.sampled_at_ns:
                    found.append((ticket, age_ns))
    return found
