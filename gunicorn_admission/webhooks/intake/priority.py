"""A partner that is known only after verification may raise its request's priority."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from gunicorn_admission.core.types import Priority

__all__ = ["raise_priority"]


def raise_priority(environ: Mapping[str, Any], priority: Priority | None) -> None:
    """
    Let the rest of a request count as more important, in its class and for dependencies.

    Args:
        environ: Of WSGI; without a slot of admission nothing happens.
        priority: ``None`` changes nothing, as does one that is not higher.
    """
    exchange = environ.get("gunicorn_admission.token")
    gate = environ.get("gunicorn_admission.gate")
    if priority is None or exchange is None or gate is None:
        return
    ticket = exchange.ticket
    if priority >= ticket.priority:
        return
    gate.limiter.reclassify(ticket, ticket.partition.name, priority)
    if isinstance(environ, MutableMapping):
        environ["gunicorn_admission.priority"] = priority.name.lower()
