"""Flask applications under admission control, for tests of the extension without a server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask, request

from flask_ext.guard import Guard
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome, Priority, Reason
from gunicorn_admission.errors import Rejected
from gunicorn_admission.limiter import Limiter

__all__ = ["Outcomes", "full", "guard_of", "limiter_of", "rejected", "told"]


def told() -> dict[str, Any]:
    """A view: what admission left in the environ of this request."""
    prefix = "gunicorn_admission."
    return {
        name.removeprefix(prefix): value
        for name, value in request.environ.items()
        if name.startswith(prefix) and isinstance(value, str | float)
    }


def guard_of(app: Flask) -> Guard:
    """What the extension knows of an application."""
    guard = app.extensions["gunicorn_admission.guard"]
    assert isinstance(guard, Guard)
    return guard


def limiter_of(app: Flask) -> Limiter:
    """The limiter of an application; a first request makes it."""
    if guard_of(app).limiter() is None:
        assert app.test_client().get("/").status_code == 200
    limiter = guard_of(app).limiter()
    assert limiter is not None
    return limiter


@contextlib.contextmanager
def full(app: Flask) -> Iterator[Limiter]:
    """Refuse every request meanwhile that may not wait, for all slots are taken."""
    limiter = limiter_of(app)
    limiter.set_limit(1)
    with limiter.acquire(partition="(test)"):
        yield limiter
    limiter.set_limit(None)


class Outcomes(list[Outcome]):
    """What a limiter is told at the end of requests, from now on."""

    def __init__(self, limiter: Limiter, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        finish = limiter._controller.finish

        def noted(ticket: Ticket, now_ns: int, outcome: Outcome) -> None:
            self.append(outcome)
            finish(ticket, now_ns, outcome)

        monkeypatch.setattr(limiter._controller, "finish", noted)


def rejected(retry_after: float = 3.2) -> Rejected:
    """A refusal as a limiter raises it."""
    return Rejected(Reason.QUEUE_FULL, Priority.LOW, retry_after, "postgres")
