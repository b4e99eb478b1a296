"""What the kernel knows of a connection: since when its bytes wait, and whether anybody is left."""

from __future__ import annotations

import select
import socket
import sys
from typing import Any

from gunicorn_admission.core.policy import MILLISECOND

__all__ = ["is_gone", "waited_ns"]

# struct tcp_info of Linux: 8 one-byte fields, then 32-bit ones; tcpi_last_data_recv is
# the twelfth of these: milliseconds since the last bytes arrived.
_OFFSET = 52
_SIZE = _OFFSET + 4
_TCP_INFO = getattr(socket, "TCP_INFO", None) if sys.platform == "linux" else None
# The kernel counts in ticks of up to 4 ms, so less than that is no wait.
_RESOLUTION_MS = 4

_RDHUP = getattr(select, "POLLRDHUP", 0)
_HUNG_UP = (select.POLLHUP | select.POLLERR) if hasattr(select, "poll") else 0


def waited_ns(sock: socket.socket) -> int:
    """
    Time since the last bytes of a TCP connection arrived, in nanoseconds.

    That includes the time in the kernel's accept backlog, which nothing else shows. 0 where
    it is not known (other systems, Unix sockets) or too short to be measured.
    """
    if _TCP_INFO is None:
        return 0
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _SIZE)
    except OSError:
        return 0
    waited_ms = int.from_bytes(info[_OFFSET:], sys.byteorder)
    return waited_ms * MILLISECOND if waited_ms > _RESOLUTION_MS else 0


def is_gone(sock: Any, half_closed: bool) -> bool:
    """
    Whether the client of a connection has left.

    Args:
        sock: A connected socket; TLS too, since ``poll`` looks below it.
        half_closed: Count a client that has closed its sending side as gone. On TCP that
            is all that can be seen of a full close (HAProxy's ``abortonclose`` and nginx do
            the same). On Unix sockets and TLS a full close shows as a hang-up, so a half
            close may be told from it.
    """
    try:
        poll = select.poll()
        poll.register(sock.fileno(), _RDHUP | _HUNG_UP)
        events = poll.poll(0)
    except (OSError, ValueError):
        return True
    if not events:
        return False
    return bool(events[0][1] & (_HUNG_UP | (_RDHUP if half_closed else 0)))
