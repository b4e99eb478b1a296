"""
A worker that is killed, as ``kill -9`` would, at one step of a delivery; see ``STEPS``.

    python -m tests.integration.dying_worker URL CONSUMER STEP
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from attrs import evolve
from sqlalchemy import Connection

from gunicorn_admission.webhooks.fanout.runner import Runner
from gunicorn_admission.webhooks.store import Store

__all__ = ["STEPS"]

#: Step, and whether the attempt was on record and the effect (had it been elsewhere) had happened.
STEPS = {
    "claim-inside": (False, False),  # in the transaction that reserves
    "claim-after": (True, False),  # reserved, and the handler was not called yet
    "handler-before": (True, False),
    "handler-after": (True, True),  # the effect has happened, nothing says so
    "complete-inside": (True, True),
    "complete-after": (True, True),
}

T = TypeVar("T")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class _Dying(Store):
    """A store whose process dies in or after its ``n``-th transaction."""

    def __init__(self, url: str, inside: int, after: int) -> None:
        super().__init__(url)
        self._dies = inside, after
        self._count = 0

    def write(self, work: Callable[[Connection], T], *, timeout: float | None = None) -> T:
        self._count += 1
        number, (inside, after) = self._count, self._dies

        def dying(connection: Connection) -> T:
            result = work(connection)
            if number == inside:
                _die()
            return result

        result = super().write(dying, timeout=timeout)
        if number == after:
            _die()
        return result

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        self._count += 1
        inside, after = self._dies
        with super().transaction() as connection:
            yield connection
            if self._count == inside:
                _die()
        if self._count == after:
            _die()


def main(url: str, name: str, step: str) -> None:
    """Deliver one event of ``name`` and die at ``step``."""
    from tests.integration.consumers_app import consumers

    place, _, moment = step.partition("-")
    number = {"claim": 1, "complete": 2}.get(place, 0)
    store = _Dying(
        url,
        inside=number if moment == "inside" else 0,
        after=number if moment == "after" else 0,
    )
    consumer = consumers[name]
    handler = consumer.handler

    def dying(*arguments: Any) -> object:
        if step == "handler-before":
            _die()
        result = handler(*arguments)
        if step == "handler-after":
            _die()
        return result

    Runner(store, evolve(consumer, handler=dying)).step(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
