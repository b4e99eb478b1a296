"""
Looking at a request while it still lies in the socket buffer.

Only what is beyond doubt is read in front of gunicorn's parser: anything unusual (chunked
bodies, ``Expect``, upgrades, two lengths, malformed lines) is left to the parser, so that
its answers stay what they were.
"""

from __future__ import annotations

import re
import socket
from typing import Any, NamedTuple

__all__ = ["Whole", "peek", "skip_proxy_header", "whole_request"]

_PEEK = socket.MSG_PEEK | socket.MSG_DONTWAIT
_HEAD = 2048
#: Requests that are larger are not refused on the main loop.
_MOST = 72 * 1024

_head = re.compile(
    rb"([A-Z]{3,20}) [!-~]+ HTTP/1\.([01])\r\n((?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\r\n\0]*\r\n)*)\r\n"
)
_length = re.compile(rb"^content-length:[ \t]*([0-9]{1,9})[ \t]*\r$", re.M)
_unusual = re.compile(
    rb"^(?:transfer-encoding|expect|upgrade|http2-settings):|^content-length:(?![ \t]*[0-9]{1,9}[ \t]*\r$)",
    re.M,
)
_closes = re.compile(rb"^connection:[^\r\n]*\bclose\b", re.M)
_V2_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


class Whole(NamedTuple):
    """
    A complete and ordinary request.

    Attributes:
        size: Its bytes, head and body.
        is_head: The method is HEAD, whose answer has no body.
        keep_alive: The client does not ask to close.
    """

    size: int
    is_head: bool
    keep_alive: bool


def peek(sock: socket.socket, size: int = _HEAD) -> bytes | None:
    """
    Return what lies in the socket buffer without taking it.

    Returns:
        ``b""`` when the client has closed, ``None`` when nothing has arrived yet.

    Raises:
        OSError: The connection is broken.
    """
    try:
        return sock.recv(size, _PEEK)
    except (BlockingIOError, InterruptedError):
        return None


def skip_proxy_header(data: bytes) -> bytes:
    """Return what follows a PROXY protocol header, version 1 or 2; ``data`` without one."""
    if data.startswith(b"PROXY "):
        _, _, rest = data.partition(b"\r\n")
        return rest
    if data.startswith(_V2_SIGNATURE) and len(data) >= 16:
        return data[16 + int.from_bytes(data[14:16], "big") :]
    return data


def whole_request(sock: Any) -> Whole | None:
    """
    Return the request at the front of the buffer if it is complete and ordinary.

    Raises:
        OSError: The connection is broken.
    """
    data = peek(sock, _MOST)
    if not data:
        return None
    match = _head.match(data)
    if match is None:
        return None
    fields = match[3].lower()
    if _unusual.search(fields):
        return None
    lengths = _length.findall(fields)
    if len(lengths) > 1:
        return None
    size = match.end() + (int(lengths[0]) if lengths else 0)
    if len(data) < size:
        return None
    keep_alive = match[2] == b"1" and not _closes.search(fields)
    return Whole(size, match[1] == b"HEAD", keep_alive)
