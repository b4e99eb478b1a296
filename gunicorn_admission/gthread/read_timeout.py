"""
How long a thread may wait for the next bytes of a client.

A stalled client otherwise holds its thread for ever, and neither gunicorn's timeout nor a
middleware sees it. What runs out shows as ``BlockingIOError``, on plain connections and
on TLS.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

__all__ = ["ReadTimeout", "read_timeout"]

_LEVEL, _OPTION = int(socket.SOL_SOCKET), int(socket.SO_RCVTIMEO)


class ReadTimeout(Protocol):
    """Bounds the silence on a connection."""

    def set(self, conn: Any) -> None:
        """Apply it; a connection that is broken already is left to its reader."""

    def set_once(self, conn: Any) -> None:
        """Apply it to a connection that has none yet."""


def read_timeout(seconds: float, tls: bool) -> ReadTimeout:
    """
    Return a timeout for connections of one kind.

    Args:
        seconds: Longest silence; above 0.
        tls: Whether they carry TLS.
    """
    return _OfTls(seconds) if tls else _OfKernel(seconds)


class _OfKernel:
    """
    The kernel's receive timeout.

    It stays in force when gunicorn makes the socket blocking again.
    """

    __slots__ = ("_value",)

    def __init__(self, seconds: float) -> None:
        whole = int(seconds)
        self._value = struct.pack("ll", whole, max(1, int((seconds - whole) * 1e6)))

    def set(self, conn: Any) -> None:
        try:
            conn.sock.setsockopt(_LEVEL, _OPTION, self._value)
        except OSError:
            pass

    def set_once(self, conn: Any) -> None:
        if not getattr(conn, "admission_timed", False):
            conn.admission_timed = True
            self.set(conn)


class _OfTls:
    """
    Python's timeout, for as long as something is read.

    The kernel's is of no use here: when it runs out, the ssl module simply reads again.
    Writing has no timeout, as ever, since a large answer may take its time.
    """

    __slots__ = ("_seconds",)

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def set(self, conn: Any) -> None:
        known = hasattr(conn, "admission_patience")
        conn.admission_patience = self._seconds
        if known:
            return
        if conn.parser is None:
            conn.init = partial(_init, conn)
        else:
            _bound_reads(conn)

    def set_once(self, conn: Any) -> None:
        if not hasattr(conn, "admission_patience"):
            self.set(conn)


def _init(conn: Any) -> None:
    """Stands in for ``conn.init``, which shakes hands in a thread (gunicorn 24 and later)."""
    if conn.initialized:
        return
    plain = conn.sock
    conn.sock = _PatientSocket(plain.family, plain.type, plain.proto, plain.detach())
    conn.sock.patience = conn.admission_patience
    try:
        type(conn).init(conn)
    except TimeoutError as error:
        raise _silence() from error
    conn.sock.setblocking(True)
    _bound_reads(conn)


class _PatientSocket(socket.socket):
    """A socket that, told to block, does so within bounds; what wraps it takes them over."""

    patience: float

    def setblocking(self, flag: bool, /) -> None:
        self.settimeout(self.patience if flag else 0.0)


def _bound_reads(conn: Any) -> None:
    """Bound each read of the parser; an HTTP/2 connection has timeouts of its own."""
    unreader = getattr(conn.parser, "unreader", None)
    if unreader is None:
        return
    chunk: Callable[..., bytes] = unreader.chunk

    def bounded(*args: Any) -> bytes:
        sock = unreader.sock
        if sock.gettimeout() is not None:
            return chunk(*args)  # somebody has set a shorter one
        sock.settimeout(conn.admission_patience)
        try:
            return chunk(*args)
        except TimeoutError as error:
            raise _silence() from error
        finally:
            sock.settimeout(None)

    unreader.chunk = bounded


def _silence() -> BlockingIOError:
    return BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
