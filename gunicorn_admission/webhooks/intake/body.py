"""The raw body of a request, within bounds, however its length is announced."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

__all__ = ["Incomplete", "TooLarge", "drain", "read_body"]

_PIECE: Final = 65536
#: Seconds that may go into a body that is refused.
_DRAIN_TIME: Final = 2.0


class TooLarge(Exception):
    """There is more than may be read; carries nothing of it."""


class Incomplete(Exception):
    """
    The body ended before its announced end, came too slowly, or its framing is broken.

    Attributes:
        got: Bytes that came.
        announced: Bytes of ``Content-Length``; ``None`` for a chunked body.
    """

    def __init__(self, got: int, announced: int | None) -> None:
        super().__init__(f"{got} of {announced} bytes")
        self.got = got
        self.announced = announced


def read_body(
    environ: Mapping[str, Any],
    largest: int,
    patience: float,
    monotonic: Callable[[], float] = time.monotonic,
) -> bytes:
    """
    Read a whole body, and never more than ``largest`` bytes and one.

    Args:
        environ: Of WSGI. A body without a length is read to its end where the server marks
            that (``wsgi.input_terminated``); elsewhere there is no body without a length.
        largest: Most bytes.
        patience: Seconds for the whole body, after which its sender gives up; under gunicorn
            also for a single silence. Other servers have timeouts of their own.
        monotonic: Seconds.

    Raises:
        TooLarge: It is longer; nothing was read when ``Content-Length`` says so.
        Incomplete: It is shorter than announced, took too long, or could not be read.
    """
    announced = _announced(environ)
    if announced is not None and announced > largest:
        raise TooLarge
    if announced is None and not environ.get("wsgi.input_terminated"):
        return b""
    pieces: list[bytes] = []
    got, most = 0, largest + 1 if announced is None else announced
    until = monotonic() + patience
    with _silence_bounded(environ, patience):
        while got < most:
            if monotonic() > until:
                raise Incomplete(got, announced)
            try:
                piece = environ["wsgi.input"].read(min(most - got, _PIECE))
            except Exception:  # each server has errors of its own for a client that has gone
                raise Incomplete(got, announced) from None
            if not piece:
                break
            pieces.append(piece)
            got += len(piece)
    if announced is not None and got < announced:
        raise Incomplete(got, announced)
    if got > largest:
        raise TooLarge
    return b"".join(pieces)


def drain(
    environ: Mapping[str, Any], most: int, monotonic: Callable[[], float] = time.monotonic
) -> None:
    """
    Read what is left of a refused body, within bounds, and throw it away.

    A client that is still sending when the connection closes gets a reset, which may destroy
    the answer before it is read (RFC 9112 section 9.6).

    Args:
        environ: Of WSGI.
        most: Bytes; as much as a genuine body may have, which costs no more than one.
        monotonic: Seconds.
    """
    until = monotonic() + _DRAIN_TIME
    with contextlib.suppress(Exception):  # a broken body is the client's affair
        announced = _announced(environ)
        if announced is None:
            left = most if environ.get("wsgi.input_terminated") else 0
        else:
            left = min(announced, most)
        with _silence_bounded(environ, _DRAIN_TIME):
            while left > 0 and monotonic() < until:
                piece = environ["wsgi.input"].read(min(left, _PIECE))
                if not piece:
                    return
                left -= len(piece)


def _announced(environ: Mapping[str, Any]) -> int | None:
    """
    Return ``Content-Length``, or ``None`` for a body that ends by itself.

    Transfer-Encoding overrides Content-Length (RFC 9112 section 6.3), where the server took it.
    """
    if environ.get("HTTP_TRANSFER_ENCODING") and environ.get("wsgi.input_terminated"):
        return None
    text = str(environ.get("CONTENT_LENGTH") or "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise Incomplete(0, None)
    return int(text)


@contextlib.contextmanager
def _silence_bounded(environ: Mapping[str, Any], seconds: float) -> Iterator[None]:
    """Bound each wait for the client: a Content-Length that lies must not hold the thread."""
    sock = environ.get("gunicorn.socket")
    before: float | None = None
    try:
        before = sock.gettimeout()  # type: ignore[union-attr]
        sock.settimeout(seconds)  # type: ignore[union-attr]
    except Exception:
        sock = None  # another server, or a stream of HTTP/2
    try:
        yield
    finally:
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.settimeout(before)
