"""
Looking at a request while it still lies in the socket buffer.

Only what is beyond doubt is read in front of gunicorn's parser: anything unusual (chunked
bodies, ``Expect``, upgrades, two lengths or hosts, malformed lines) is left to the parser, so
that its answers stay what they were.
"""

from __future__ import annotations

import re
import socket
import sys
from typing import Any, NamedTuple

__all__ = ["Peek", "Whole", "is_fresh", "proxy_header_size", "skip_proxy_header"]

_PEEK = int(socket.MSG_PEEK | socket.MSG_DONTWAIT)
# On a TCP socket of Linux MSG_TRUNC throws the bytes away instead of copying them (tcp(7)).
_TAKE = int(socket.MSG_DONTWAIT | (socket.MSG_TRUNC if sys.platform == "linux" else 0))
#: Requests that are larger are not refused without a thread.
_MOST = 72 * 1024
#: As much as is looked at to classify a request: its request line, and in most cases its head.
_HEAD = 2048

_head = re.compile(
    rb"([A-Z]{3,20}) [!-~]+ HTTP/1\.([01])\r\n"
    rb"((?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t -~\x80-\xff]*\r\n)*)\r\n"
)
_length = re.compile(rb"^content-length:[ \t]*([0-9]{1,9})[ \t]*\r$", re.M)
_host = re.compile(rb"^host:", re.M)
_unusual = re.compile(
    rb"^(?:transfer-encoding|expect|upgrade|http2-settings):"
    rb"|^content-length:(?![ \t]*[0-9]{1,9}[ \t]*\r$)",
    re.M,
)
_body = re.compile(
    rb"\r\n(content-length|transfer-encoding|expect):[ \t]*([0-9]{0,9})", re.IGNORECASE
)
_BODILESS = (b"GET ", b"HEAD ")
_LARGEST_HEAD = 16 * 1024
#: The kernel's buffer holds at least so much of a request.
_LARGEST_PARKED = 64 * 1024
_closes = re.compile(rb"^connection:[^\r\n]*\bclose\b", re.M)
_V1_START, _LONGEST_V1 = b"PROXY ", 107
_V2_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
_V2_FIXED = 16
_HANDSHAKE, _RECORD_HEAD = 22, 5


class Whole(NamedTuple):
    """
    A complete and ordinary request.

    Attributes:
        size: Its bytes, head and body.
        is_head: The method is HEAD, whose answer has no body.
        keep_alive: The client does not ask to close.
        followed: There are bytes behind it, of a pipelined request.
    """

    size: int
    is_head: bool
    keep_alive: bool
    followed: bool


class Peek:
    """
    Reads socket buffers without taking from them, into one buffer that is used again.

    One look serves for the class of a request and for refusing it: each system call on
    the main loop lets go of the interpreter, and it may take a while to get it back.

    Thread safety: one thread at a time; each that needs one has its own.
    """

    __slots__ = ("_buffer", "_length", "_view")

    def __init__(self) -> None:
        self._buffer = bytearray(_MOST)
        self._view = memoryview(self._buffer)
        self._length = 0

    def look(self, sock: Any) -> bytes | None:
        """
        Return the start of what lies in the buffer of a socket.

        Returns:
            ``b""`` when the client has closed, ``None`` when nothing has arrived yet.

        Raises:
            OSError: The connection is broken.
        """
        self._length = 0
        try:
            self._length = sock.recv_into(self._buffer, _MOST, _PEEK)
        except (BlockingIOError, InterruptedError):
            return None
        return bytes(self._view[: min(self._length, _HEAD)])

    def forget(self) -> None:
        """Know of no request any more."""
        self._length = 0

    @property
    def length(self) -> int:
        """Bytes that the last look has seen."""
        return self._length

    def missing(self, start: int = 0) -> int:
        """
        How many bytes must be there before the request that was looked at may be complete.

        Args:
            start: Where it begins, behind a PROXY protocol header.

        0 when it may be read now: it is complete, or cannot be waited for because it is
        chunked, large, or its client waits for ``100 Continue``.
        """
        length = self._length
        end = self._buffer.find(b"\r\n\r\n", start, length)
        if end < 0:
            return length + 1 if length < _LARGEST_HEAD else 0
        if end + 4 == length and self._buffer.startswith(_BODILESS, start):
            return 0
        size = end + 4
        for name, value in _body.findall(self._buffer, start, size):
            if name[0] not in b"cC":
                return 0
            size += int(value or 0)
        return size if length < size <= _LARGEST_PARKED else 0

    def missing_of_hello(self) -> int:
        """The same for a client that begins with TLS (RFC 8446 section 5.1: type, length)."""
        length = self._length
        if not length or self._buffer[0] != _HANDSHAKE:
            return 0  # for the ssl module to refuse
        if length < _RECORD_HEAD:
            return _RECORD_HEAD
        size = _RECORD_HEAD + int.from_bytes(self._buffer[3:_RECORD_HEAD], "big")
        return size if length < size <= _LARGEST_HEAD + _RECORD_HEAD else 0

    def whole(self) -> Whole | None:
        """Return the request that was looked at last, if it is complete and ordinary."""
        match = _head.match(self._buffer, 0, self._length)
        if match is None:
            return None
        fields = match[3].lower()
        if _unusual.search(fields) or len(_host.findall(fields)) > 1:
            return None
        lengths = _length.findall(fields)
        if len(lengths) > 1:
            return None
        size = match.end() + (int(lengths[0]) if lengths else 0)
        if self._length < size:
            return None
        keep_alive = match[2] == b"1" and not _closes.search(fields)
        return Whole(size, match[1] == b"HEAD", keep_alive, self._length > size)

    def take(self, sock: Any, size: int) -> None:
        """
        Take what was looked at from the socket.

        Raises:
            OSError: The connection is broken.
        """
        sock.recv_into(self._buffer, size, _TAKE)


def is_fresh(conn: Any) -> bool:
    """Whether no request of a connection has been parsed yet, so that a PROXY header may come."""
    return conn.parser is None or not getattr(conn.parser, "req_count", 0)


def proxy_header_size(data: bytes) -> int | None:
    """
    Return the length of the PROXY protocol header, version 1 or 2, that a connection starts with.

    0 without one, ``None`` while there may be one that has not arrived in full.
    """
    if data[: len(_V1_START)] == _V1_START[: len(data)]:
        end = data.find(b"\r\n")
        if end >= 0:
            return end + 2
        return None if len(data) < _LONGEST_V1 else 0
    if len(data) < _V2_FIXED:
        return None if data[: len(_V2_SIGNATURE)] == _V2_SIGNATURE[: len(data)] else 0
    if data.startswith(_V2_SIGNATURE):
        return _V2_FIXED + int.from_bytes(data[_V2_FIXED - 2 : _V2_FIXED], "big")
    return 0


def skip_proxy_header(data: bytes) -> bytes:
    """Return what follows a PROXY protocol header: nothing while it has not arrived in full."""
    size = proxy_header_size(data)
    return b"" if size is None else data[size:]
