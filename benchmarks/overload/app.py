"""
The server under test: a thin webhook endpoint in front of a database of known capacity.

It verifies a signature over the body, makes one database call and answers. The database is
a pool of ``BENCHMARK_CONNECTIONS`` connections whose calls sleep for a log-normal time with
the mean ``BENCHMARK_SECONDS``; their quotient is what it can do a second. A shared control
file makes it slow or lets it hang while the server runs. ``BENCHMARK_SEMAPHORE`` puts a
semaphore of that size in front, which is what people write themselves.
"""

from __future__ import annotations

import hmac
import math
import mmap
import os
import random
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from flask import Flask, request

from benchmarks.overload.plan import DATABASE_STATES
from benchmarks.overload.records import HANDLED
from benchmarks.overload.signed import ID_HEADER, signature

__all__ = ["Database", "app", "limited"]

SIGMA = 0.25
SLOWER = 10.0
CHECKOUT_SECONDS = 30.0  # SQLAlchemy's default
_NORMAL, _SLOW, _HANG = range(len(DATABASE_STATES))


class NoConnection(Exception):
    """The pool had none for as long as it waits."""


class Database:
    """So many connections; a call takes one of them for a while."""

    def __init__(self, connections: int, seconds: float, control: Path | None) -> None:
        self._pool = threading.BoundedSemaphore(connections)
        self._mu = math.log(seconds) - SIGMA * SIGMA / 2
        self._chance = random.Random()
        self._state: mmap.mmap | bytes = bytes(1)
        if control is not None:
            with control.open("r+b") as file:
                self._state = mmap.mmap(file.fileno(), 0)

    def call(self) -> None:
        """Ask it something."""
        if not self._pool.acquire(timeout=CHECKOUT_SECONDS):
            raise NoConnection(f"no connection within {CHECKOUT_SECONDS:g} s")
        try:
            while self._state[0] == _HANG:
                time.sleep(0.01)
            seconds = self._chance.lognormvariate(self._mu, SIGMA)
            time.sleep(seconds * SLOWER if self._state[0] == _SLOW else seconds)
        finally:
            self._pool.release()


def limited(application: Callable[..., Any], size: int) -> Callable[..., Any]:
    """Refuse what finds a semaphore taken; health checks pass."""
    semaphore = threading.BoundedSemaphore(size)
    refusal = [("Content-Type", "text/plain"), ("Content-Length", "10"), ("Retry-After", "10")]

    def limit(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/healthz":
            return application(environ, start_response)  # type: ignore[no-any-return]
        if not semaphore.acquire(blocking=False):
            start_response("503 Service Unavailable", refusal)
            return [b"overloaded"]
        try:
            return application(environ, start_response)  # type: ignore[no-any-return]
        finally:
            semaphore.release()

    return limit


def _path(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None


database = Database(
    int(os.environ.get("BENCHMARK_CONNECTIONS", "8")),
    float(os.environ.get("BENCHMARK_SECONDS", "0.020")),
    _path("BENCHMARK_CONTROL"),
)
_handled = _path("BENCHMARK_HANDLED")
_log = None if _handled is None else os.open(_handled, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
app = Flask(__name__)


def webhook() -> tuple[str, int]:
    """Verify, call, answer; note the run, so that work done for nobody can be told."""
    began = time.monotonic()
    try:
        expected = signature(request.get_data())
        if not hmac.compare_digest(expected, request.headers.get("X-Signature", "")):
            return "bad signature", 401
        database.call()
        return "ok", 200
    finally:
        if _log is not None:
            id = int(request.headers.get(ID_HEADER, 0))
            os.write(_log, HANDLED.pack(id, began, time.monotonic()))


for _name in ("payments", "updates", "analytics"):
    app.post(f"/{_name}", endpoint=_name)(webhook)


@app.get("/healthz")
def healthz() -> str:
    """What a load balancer asks; it needs a thread and nothing else."""
    return "ok"


@app.errorhandler(NoConnection)
def no_connection(error: NoConnection) -> tuple[str, int]:
    """What an application does about it."""
    return str(error), 500


if os.environ.get("BENCHMARK_SEMAPHORE"):
    _size = int(os.environ["BENCHMARK_SEMAPHORE"])
    app.wsgi_app = limited(app.wsgi_app, _size)  # type: ignore[method-assign]
