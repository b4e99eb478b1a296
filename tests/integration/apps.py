"""
WSGI handlers that a test can hold, release, break and question; served by ``server.py``.

Handlers wait at file locks (``Gate`` in ``server.py``) and append what they saw to
``records.jsonl`` as one JSON object a line: ``event``, ``path``, ``pid``, ``thread``.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

__all__ = ["Bomb", "application"]

DIRECTORY = Path(os.environ.get("ADMISSION_TEST_DIR", "."))

Handler = Callable[["WSGIEnvironment", "StartResponse", str], Iterable[bytes]]


class Bomb(BaseException):
    """Not an Exception, so that no ``except Exception`` on its way up catches it."""


def record(event: str, environ: WSGIEnvironment, **data: object) -> None:
    """Append one record; a single short write with O_APPEND is atomic."""
    row = {
        "event": event,
        "path": environ["PATH_INFO"],
        "pid": os.getpid(),
        "thread": threading.current_thread().name,
        **data,
    }
    handle = os.open(DIRECTORY / "records.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, json.dumps(row).encode() + b"\n")
    finally:
        os.close(handle)


def wait_at(gate: str) -> None:
    """Block this thread while the test holds the gate; no gate, no wait."""
    with (DIRECTORY / f"gate-{gate}").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_SH)


def answer(
    start_response: StartResponse, body: bytes, kind: str = "text/plain", status: str = "200 OK"
) -> list[bytes]:
    """A complete answer."""
    start_response(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [body]


class Body:
    """A response iterable that records its ``close``, once a call."""

    def __init__(self, chunks: Iterable[bytes], environ: WSGIEnvironment) -> None:
        self._chunks = iter(chunks)
        self._environ = environ

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def close(self) -> None:
        """Called by the server when the answer is sent or the client is gone."""
        record("close", self._environ)


def health(environ: WSGIEnvironment, start_response: StartResponse, rest: str) -> Iterable[bytes]:
    """``/health``: ok, at once."""
    return answer(start_response, b"ok")


def pid(environ: WSGIEnvironment, start_response: StartResponse, rest: str) -> Iterable[bytes]:
    """``/pid``: the worker's process id."""
    return answer(start_response, str(os.getpid()).encode())


def echo(environ: WSGIEnvironment, start_response: StartResponse, rest: str) -> Iterable[bytes]:
    """``/echo/...``: what arrived, as JSON: method, path, query, body, strings of the environ."""
    shown = {name: value for name, value in environ.items() if isinstance(value, str | int | float)}
    data = {
        "method": environ["REQUEST_METHOD"],
        "path": environ["PATH_INFO"],
        "query": environ["QUERY_STRING"],
        "body": environ["wsgi.input"].read().decode("latin-1"),
        "environ": shown,
    }
    return answer(start_response, json.dumps(data).encode(), "application/json")


def block(environ: WSGIEnvironment, start_response: StartResponse, rest: str) -> Iterable[bytes]:
    """``/block/<gate>``: wait until the test opens the gate, then answer the gate's name."""
    wait_at(rest)
    return answer(start_response, rest.encode())


def stream(environ: WSGIEnvironment, start_response: StartResponse, rest: str) -> Iterable[bytes]:
    """``/stream/<gate>?tail=1``: ``head``, wait at the gate, then ``tail`` times ``tail``."""
    query = dict(parse_qsl(environ["QUERY_STRING"]))

    def chunks() -> Iterator[bytes]:
        yield b"head\n"
        wait_at(rest)
        for _ in range(int(query.get("tail", "1"))):
            yield b"tail\n"

    start_response("200 OK", [("Content-Type", "text/event-stream")])
    return Body(chunks(), environ)


def generator(
    environ: WSGIEnvironment, start_response: StartResponse, rest: str
) -> Iterable[bytes]:
    """``/generator/<gate>``: as ``/stream``, but start_response only when iteration begins."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    try:
        yield b"head\n"
        wait_at(rest)
        yield b"tail\n"
    finally:
        record("close", environ)


class Content(io.BytesIO):
    """A file without a descriptor that records its ``close``."""

    environ: WSGIEnvironment

    def close(self) -> None:
        if not self.closed:
            record("close", self.environ)
        super().close()


def file(environ: WSGIEnvironment, start_response: StartResponse, rest: str) -> Iterable[bytes]:
    """``/file/real`` (a descriptor, so sendfile) or ``/file/memory``: this source, wrapped."""
    source = Path(__file__).read_bytes()
    handle: Any
    if rest == "memory":
        handle = Content(source)
        handle.environ = environ
    else:
        handle = Path(__file__).open("rb")  # noqa: SIM115 - the server closes it
    start_response("200 OK", [("Content-Length", str(len(source)))])
    wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](handle)
    return wrapped


def fail(environ: WSGIEnvironment, start_response: StartResponse, rest: str) -> Iterable[bytes]:
    """``/fail/{before,started,iteration,close,base,exit}``: raise there."""
    if rest == "before":
        raise RuntimeError("before start_response")
    if rest == "base":
        raise Bomb("not an Exception")
    if rest == "exit":
        raise SystemExit(3)
    start_response("200 OK", [("Content-Type", "text/plain")])
    if rest == "started":
        raise RuntimeError("after start_response")
    return BrokenBody(rest)


class BrokenBody:
    """Fails at ``iteration`` after one chunk, or at ``close``."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __iter__(self) -> Iterator[bytes]:
        yield b"head\n"
        if self._where == "iteration":
            raise RuntimeError("while iterating")

    def close(self) -> None:
        if self._where == "close":
            raise RuntimeError("while closing")


def large(environ: WSGIEnvironment, start_response: StartResponse, rest: str) -> Iterable[bytes]:
    """``/large/<bytes>``: that many bytes."""
    return answer(start_response, b"x" * int(rest))


def status(environ: WSGIEnvironment, start_response: StartResponse, rest: str) -> Iterable[bytes]:
    """``/status/<code>``: an empty answer with this code."""
    return answer(start_response, b"", status=f"{rest} Code")


HANDLERS: dict[str, Handler] = {
    "health": health,
    "pid": pid,
    "echo": echo,
    "block": block,
    "stream": stream,
    "generator": generator,
    "file": file,
    "fail": fail,
    "large": large,
    "status": status,
}


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Record the call and run the handler that the first path segment names."""
    name, _, rest = environ["PATH_INFO"].strip("/").partition("/")
    record("call", environ)
    handler = HANDLERS.get(name)
    if handler is None:
        return answer(start_response, b"no such handler", status="404 Not Found")
    return handler(environ, start_response, rest)
