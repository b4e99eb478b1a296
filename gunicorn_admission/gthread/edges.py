"""
Waiting until enough lies in a Unix socket.

The kernel wakes a poller for every byte there, since SO_RCVLOWAT means nothing for these
sockets, and a poller that is asked again while bytes lie unread wakes at once, for ever.
So they are watched by a poller of their own that tells of changes only (EPOLLET, epoll(7)),
and that poller is one more thing which gunicorn's main loop waits for.
"""

from __future__ import annotations

import fcntl
import select
import sys
import termios
from collections.abc import Callable
from selectors import EVENT_READ
from typing import Any

__all__ = ["Edges", "has_edges"]


def has_edges() -> bool:
    """Whether this system has such a poller (Linux)."""
    return hasattr(select, "epoll")


class Edges:
    """
    Sockets of one worker that wait for a number of bytes.

    Args:
        poller: gunicorn's.

    Thread safety: main loop only.
    """

    def __init__(self, poller: Any) -> None:
        self._waiting: dict[int, tuple[Any, int, Callable[[Any], None]]] = {}
        self._epoll = select.epoll()
        self._ended = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR
        self._events = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
        poller.register(self._epoll, EVENT_READ, self._look)

    def watch(self, sock: Any, needed: int, ready: Callable[[Any], None]) -> None:
        """Call back when so many bytes are there or no more will come, until it is forgotten."""
        self._waiting[sock.fileno()] = sock, needed, ready
        self._epoll.register(sock.fileno(), self._events)

    def forget(self, sock: Any) -> bool:
        """Stop waiting; whether the socket was waited for."""
        descriptor = sock.fileno()
        if self._waiting.pop(descriptor, None) is None:
            return False
        self._epoll.unregister(descriptor)
        return True

    def _look(self, _: object) -> None:
        for descriptor, events in self._epoll.poll(0):
            sock, needed, ready = self._waiting[descriptor]
            if events & self._ended or _lies_in(descriptor) >= needed:
                ready(sock)


def _lies_in(descriptor: int) -> int:
    count = fcntl.ioctl(descriptor, termios.FIONREAD, b"\0\0\0\0")
    return int.from_bytes(count, sys.byteorder)
