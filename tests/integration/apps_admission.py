"""
What the test application answers beside ``apps.py`` when admission is under test.

``/admission`` shows the limiter's statistics, ``/raise`` breaks in every way that Python
knows, ``/read`` reads a body in pieces, ``/hold`` waits where threads are greenlets,
``/work`` takes time. The
configuration in ``admission.py`` leaves the worker here.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from attrs import asdict

from tests.integration import apps
from tests.integration.apps import answer, record, wait_at

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

__all__ = ["application", "asgi", "note_exit", "note_sendfile", "worker"]

#: gunicorn's worker in this process; set by ``post_worker_init`` of the configuration.
worker: Any = None


def statistics() -> dict[str, Any]:
    """The limiter's statistics and what gunicorn counts, as JSON can hold it."""
    limiter = worker.admission.limiter
    data: dict[str, Any] = {"installed": worker.admission.mode, "nr": worker.nr}
    if hasattr(worker, "nr_conns"):
        data["nr_conns"] = worker.nr_conns
    if limiter is not None:
        data |= asdict(limiter.statistics())
        for name in ("shed", "would_shed"):
            data[name] = {" ".join(key): count for key, count in data[name].items()}
    return data


def note_exit() -> None:
    """Record the last statistics of a worker; for the hook ``worker_exit``."""
    if getattr(worker, "admission", None) is not None:
        record("exit", {"PATH_INFO": ""}, statistics=statistics())


def note_sendfile() -> None:
    """Record each call of gunicorn's ``Response.sendfile`` and whether it was done so."""
    from gunicorn.http.wsgi import Response

    original = Response.sendfile

    def sendfile(self: Any, respiter: Any) -> bool:
        done = bool(original(self, respiter))
        record("sendfile", {"PATH_INFO": ""}, done=done)
        return done

    Response.sendfile = sendfile


def admission(
    environ: WSGIEnvironment, start_response: StartResponse, rest: str
) -> Iterable[bytes]:
    """``/admission``: statistics as JSON; exempt in the configuration."""
    return answer(start_response, json.dumps(statistics()).encode(), "application/json")


ERRORS: dict[str, Callable[[], BaseException]] = {
    "bug": lambda: RuntimeError("a bug"),
    "timeout": lambda: TimeoutError("the pool ran dry"),
    "bomb": lambda: apps.Bomb("not an Exception"),
    "exit": lambda: SystemExit(3),
    "generator-exit": GeneratorExit,
    "interrupt": KeyboardInterrupt,
    "stop": StopIteration,
}


def fail(environ: WSGIEnvironment, start_response: StartResponse, rest: str) -> Iterable[bytes]:
    """``/raise/<error>/{handler,started,first,later,close}``: raise one of ``ERRORS`` there."""
    name, _, where = rest.partition("/")
    error = ERRORS[name]()
    if where == "handler":
        raise error
    start_response("200 OK", [("Content-Type", "text/plain")])
    if where == "started":
        raise error
    return Failing(error, where)


class Failing:
    """A response iterable that fails at its ``first`` or a ``later`` chunk, or at ``close``."""

    def __init__(self, error: BaseException, where: str) -> None:
        self._error = error
        self._where = where
        self._sent = 0

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._where == "first" or (self._where == "later" and self._sent):
            raise self._error
        if self._sent:
            raise StopIteration
        self._sent += 1
        return b"head\n"

    def close(self) -> None:
        """Called by the server at the end."""
        if self._where == "close":
            raise self._error


def read(environ: WSGIEnvironment, start_response: StartResponse, rest: str) -> Iterable[bytes]:
    """``/read/<gate>``: wait at the gate, read the body in pieces, answer its length."""
    wait_at(rest or "none")
    length = 0
    while data := environ["wsgi.input"].read(65536):
        length += len(data)
    return answer(start_response, str(length).encode())


def hold(environ: WSGIEnvironment, start_response: StartResponse, rest: str) -> Iterable[bytes]:
    """``/hold/<gate>``: as ``/block``, but lets other greenlets run while it waits."""
    with (apps.DIRECTORY / f"gate-{rest}").open("ab") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.005)
    return answer(start_response, rest.encode())


def work(environ: WSGIEnvironment, start_response: StartResponse, rest: str) -> Iterable[bytes]:
    """``/work/<seconds>``: take that long, as a call to something slow does."""
    time.sleep(float(rest))
    return answer(start_response, b"done")


def healthz(environ: WSGIEnvironment, start_response: StartResponse, rest: str) -> Iterable[bytes]:
    """``/healthz``: ok, at once; the path that everybody knows."""
    return answer(start_response, b"ok")


def decision(environ: WSGIEnvironment, start_response: StartResponse, rest: str) -> Iterable[bytes]:
    """``/decision/...``: what admission left in the environ, as JSON."""
    prefix = "gunicorn_admission."
    shown = {
        name.removeprefix(prefix): value
        for name, value in environ.items()
        if name.startswith(prefix) and isinstance(value, str | int | float)
    }
    return answer(start_response, json.dumps(shown).encode(), "application/json")


HANDLERS: dict[str, apps.Handler] = {
    "admission": admission,
    "raise": fail,
    "read": read,
    "hold": hold,
    "work": work,
    "healthz": healthz,
    "decision": decision,
}


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Run our handler for the first path segment, else that of ``apps.py``."""
    name, _, rest = environ["PATH_INFO"].strip("/").partition("/")
    handler = HANDLERS.get(name)
    if handler is None:
        return apps.application(environ, start_response)
    if name not in ("admission", "healthz", "work"):  # these are asked for very often
        record("call", environ)
    return handler(environ, start_response, rest)


async def asgi(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[Any]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """An ASGI application that answers ``ok``; for workers that serve no WSGI."""
    if scope["type"] == "http":
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})
