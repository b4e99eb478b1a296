"""
One admitted request on its way through the application: when it is over, and how it went.

The slot ends where the response really ends, which is when the server closes the iterable,
not when the application returns it: a body that is generated runs application code until
then. ``wsgi.file_wrapper`` results are passed on as they are (a wrapped one would not be
sent with sendfile), with ``close`` chained on the instance.

The sample is the time to the first byte, less the time spent waiting for the client's
body: neither a slow client nor a long stream says anything about capacity.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome
from gunicorn_admission.limiter.outcome import outcome_of

__all__ = ["Exchange", "TimedInput", "outcome_of_status"]

_now_ns = time.monotonic_ns
_SUCCESS, _IGNORE, _DROP = Outcome.SUCCESS, Outcome.IGNORE, Outcome.DROP


def outcome_of_status(status: str) -> Outcome:
    """
    Return what a response status says about capacity.

    2xx and 3xx are samples. 503 and 504 tell of overload further down. Everything else,
    a client's mistake or a bug, is often quick and says nothing.
    """
    if status[:1] in ("2", "3"):
        return _SUCCESS
    return _DROP if status[:3] in ("503", "504") else _IGNORE


class TimedInput:
    """
    ``wsgi.input`` that adds up the time spent waiting for the client.

    Args:
        stream: The server's input.
        ticket: Whose ``blocked_ns`` grows.
    """

    __slots__ = ("_stream", "_ticket")

    def __init__(self, stream: Any, ticket: Ticket) -> None:
        self._stream = stream
        self._ticket = ticket

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over lines."""
        return iter(self.readline, b"")

    def read(self, *args: Any) -> bytes:
        """Read like the stream does."""
        data: bytes = self._timed(self._stream.read, args)
        return data

    def readline(self, *args: Any) -> bytes:
        """Read a line like the stream does."""
        line: bytes = self._timed(self._stream.readline, args)
        return line

    def readlines(self, *args: Any) -> list[bytes]:
        """Read lines like the stream does."""
        lines: list[bytes] = self._timed(self._stream.readlines, args)
        return lines

    def _timed(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        began_ns = _now_ns()
        try:
            return function(*args)
        finally:
            self._ticket.blocked_ns += _now_ns() - began_ns


class Exchange:
    """
    Runs an application for one ticket, and sees the response through to its end.

    It is the ``start_response`` wrapper and the response iterable in one object, so that a
    request costs one allocation.

    Args:
        ticket: Granted.
        end: Called once with the outcome when the response has ended.
        first: Called at the first byte; ``None`` for nothing.

    Thread safety: used by one request at a time; ``end`` may come from another thread.
    """

    __slots__ = (
        "_body",
        "_close",
        "_end",
        "_first",
        "_start_response",
        "own_refusal",
        "status",
        "ticket",
    )

    def __init__(
        self,
        ticket: Ticket,
        end: Callable[[Ticket, Outcome], None],
        first: Callable[[Ticket], None] | None = None,
    ) -> None:
        self.ticket = ticket
        self.status = ""
        self.own_refusal = False
        self._end: Callable[[Ticket, Outcome], None] | None = end
        self._first = first
        self._body: Iterator[bytes] | None = None
        self._close: Callable[[], object] | None = None

    def run(
        self, app: Callable[..., Any], environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Call the application; what it raises ends the exchange and goes on."""
        self._start_response = start_response
        try:
            result: Any = app(environ, self.start_response)
        except BaseException as error:
            self.end(outcome_of(error))
            raise
        ticket = self.ticket
        if isinstance(result, (list, tuple)):
            # All is computed; nothing will be closed and nobody need be asked.
            ticket.sampled_at_ns = _now_ns()
            self.end()
            return result
        wrapper = environ.get("wsgi.file_wrapper")
        is_file: bool = isinstance(wrapper, type) and isinstance(result, wrapper)
        if is_file:
            ticket.sampled_at_ns = _now_ns()
            self._close = getattr(result, "close", None)
            result.close = self.close
            file: Iterable[bytes] = result
            return file
        self._close = getattr(result, "close", None)
        self._body = iter(result)
        return self

    def start_response(self, status: str, headers: Any, exc_info: Any = None) -> Any:
        """Note the status and pass everything on."""
        self.status = status
        if exc_info is None:
            return self._start_response(status, headers)
        return self._start_response(status, headers, exc_info)

    def __iter__(self) -> Exchange:
        """Return itself."""
        return self

    def __next__(self) -> bytes:
        """Pass on the next chunk; an exception ends the exchange."""
        assert self._body is not None
        try:
            chunk = next(self._body)
        except StopIteration:
            self.end()  # nothing is left to do, and test clients never close
            raise
        except BaseException as error:
            self.end(outcome_of(error))
            raise
        if not self.ticket.sampled_at_ns:
            self.ticket.sampled_at_ns = _now_ns()
            if self._first is not None:
                self._first(self.ticket)
        return chunk

    def close(self) -> None:
        """Close what the application returned; the response has ended."""
        close, self._close = self._close, None
        try:
            if close is not None:
                close()
        finally:
            self.end()

    def end(self, outcome: Outcome | None = None) -> None:
        """End the request once; by default the outcome is that of its status."""
        end, self._end = self._end, None
        if end is not None:
            if outcome is None:
                outcome = _IGNORE if self.own_refusal else outcome_of_status(self.status)
            end(self.ticket, outcome)
