"""Connections of the load generator: new ones or kept ones, answers as clients take them."""

from __future__ import annotations

import errno
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable

from benchmarks.overload.records import Outcome

__all__ = ["Client", "Pool"]

_IP_BIND_ADDRESS_NO_PORT = 24  # Linux; the kernel then picks the port when it connects
_SOURCES = 8  # loopback addresses to come from, so that there are ports enough
_IN, _OUT = select.EPOLLIN, select.EPOLLOUT
_UNKNOWN, _UNTIL_CLOSE = -1, sys.maxsize


class Client:
    """One connection, and the request on it, if any."""

    __slots__ = (
        "closed", "expected", "id", "offset", "received", "request", "reused", "socket", "writing",
    )  # fmt: skip

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.id = -1
        self.closed = self.reused = self.writing = False
        self.prepare(-1, b"")

    def prepare(self, id: int, request: bytes) -> None:
        """Take the next request; -1 stands for none."""
        self.id = id
        self.request = request
        self.offset = 0
        self.received = b""
        self.expected = _UNKNOWN


class Pool:
    """
    All connections of a generator.

    Args:
        port: Of the server, on loopback.
        keep_alive: Whether to use connections again.
        end: Called with id, outcome and time when a request has ended.

    Attributes:
        shed, shed_with_retry_after, stale: See ``records.Generated``.
    """

    def __init__(
        self, port: int, keep_alive: bool, end: Callable[[int, Outcome, float], None]
    ) -> None:
        self._address = ("127.0.0.1", port)
        self._keep_alive = keep_alive
        self._end = end
        self.poller = select.epoll()
        self._open: dict[int, Client] = {}  # by file descriptor
        self._asking: dict[int, Client] = {}  # by id of the request
        self._idle: deque[Client] = deque()
        self._opened = 0
        self._retried: set[int] = set()
        self.shed = self.shed_with_retry_after = self.stale = 0

    def ask(self, id: int, request: bytes) -> None:
        """Send a request; ``end`` is called for it unless ``leave`` comes first."""
        while self._idle:
            client = self._idle.pop()
            if not client.closed:
                client.reused = True
                self._send(client, id, request)
                return
        self._ask_anew(id, request)

    def leave(self, id: int) -> None:
        """The client of a request gives up and disconnects."""
        self._drop(self._asking.pop(id))

    def advance(self) -> None:
        """Take what has arrived, send what could not be sent before."""
        for descriptor, events in self.poller.poll(0, 512):
            client = self._open.get(descriptor)
            if client is not None and events & _OUT:
                self._write(client)
            if client is not None and not client.closed and events & ~_OUT:
                self._read(client)

    def close(self) -> None:
        """Close all."""
        for client in list(self._open.values()):
            self._drop(client)
        self.poller.close()

    def _ask_anew(self, id: int, request: bytes) -> None:
        client = self._connect()
        if client is None:
            self._end(id, Outcome.BROKEN, time.monotonic())
        else:
            self._send(client, id, request)

    def _send(self, client: Client, id: int, request: bytes) -> None:
        client.prepare(id, request)
        self._asking[id] = client
        self._write(client)

    def _drop(self, client: Client) -> None:
        if not client.closed:
            client.closed = True
            del self._open[client.socket.fileno()]
            client.socket.close()  # epoll forgets it

    def _connect(self) -> Client | None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._opened += 1
        sock.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
        sock.bind((f"127.0.0.{2 + self._opened % _SOURCES}", 0))
        if sock.connect_ex(self._address) not in (0, errno.EINPROGRESS):
            sock.close()
            return None
        client = self._open[sock.fileno()] = Client(sock)
        self.poller.register(sock, _IN)
        return client

    def _wait_to_write(self, client: Client, writing: bool) -> None:
        if client.writing != writing:
            client.writing = writing
            self.poller.modify(client.socket, _IN | _OUT if writing else _IN)

    def _write(self, client: Client) -> None:
        try:
            client.offset += client.socket.send(memoryview(client.request)[client.offset :])
        except BlockingIOError:
            self._wait_to_write(client, True)
        except OSError as error:
            if error.errno == errno.ENOTCONN:
                self._wait_to_write(client, True)
                return
            # An early answer may lie in our receive buffer: read it before judging.
            self._wait_to_write(client, False)
            self._read(client)
            if not client.closed and client.id >= 0:
                self._break(client)
        else:
            self._wait_to_write(client, client.offset < len(client.request))

    def _read(self, client: Client) -> None:
        try:
            data = client.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = None
        if client.id < 0:
            self._drop(client)  # kept, and closed by the server
            return
        if data:
            client.received += data
            if client.expected == _UNKNOWN:
                client.expected = _size(client.received)
            if len(client.received) >= client.expected != _UNKNOWN:
                self._complete(client)
        elif data is not None and client.expected == _UNTIL_CLOSE:
            self._complete(client)
        else:
            self._break(client)

    def _break(self, client: Client) -> None:
        id = client.id
        self._drop(client)
        del self._asking[id]
        if client.reused and not client.received and id not in self._retried:
            # The server closed a kept connection just before; clients try again then.
            self._retried.add(id)
            self.stale += 1
            self._ask_anew(id, client.request)
        else:
            self._end(id, Outcome.BROKEN, time.monotonic())

    def _complete(self, client: Client) -> None:
        now = time.monotonic()
        status = client.received[9:12]
        outcome = Outcome.FAILED
        if status[:1] == b"2":
            outcome = Outcome.SERVED
        elif status in (b"503", b"429"):
            outcome = Outcome.SHED
            self.shed += 1
            self.shed_with_retry_after += b"\nretry-after:" in client.received.lower()
        del self._asking[client.id]
        self._end(client.id, outcome, now)
        sent = client.offset == len(client.request)
        closes = b"connection: close" in client.received[:1024].lower()
        if self._keep_alive and sent and not closes and client.expected != _UNTIL_CLOSE:
            client.prepare(-1, b"")
            self._idle.append(client)
        else:
            self._drop(client)


def _size(received: bytes) -> int:
    """How long the answer will be, head included, as far as that can be told."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return _UNKNOWN
    head = received[:end].lower()
    at = head.find(b"\r\ncontent-length:")
    if at < 0:
        return _UNTIL_CLOSE
    return end + 4 + int(head[at + 17 :].partition(b"\r\n")[0])
