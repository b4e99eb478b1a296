"""
A closed load: so many clients, each of which asks again as soon as it is answered.

``wrk`` does it with less CPU where it is installed; else one selector loop of our own. It
tells how much a server can do, and nothing about waiting: a slow server slows the load
down. For that there is ``overload/loadgen.py``.
"""

from __future__ import annotations

import re
import selectors
import socket
import subprocess
import time
from math import ceil
from typing import NamedTuple

from benchmarks.processes import program

__all__ = ["Driven", "drive"]

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_PATIENCE = 15.0


class Driven(NamedTuple):
    """
    What came of a load.

    Attributes:
        answered: Responses of any status.
        refused: Of these, other than 2xx and 3xx.
        errors: Connections that broke or timed out.
        seconds: How long it took.
    """

    answered: int
    refused: int
    errors: int
    seconds: float


def drive(port: int, seconds: float, clients: int, *, keep_alive: bool, own: bool) -> Driven:
    """
    Ask for ``/`` on loopback.

    Args:
        port: Of the server.
        seconds: ``wrk`` takes whole seconds only, so they are rounded up for it.
        clients: Connections at the same time.
        keep_alive: False makes a new connection for each request.
        own: Use our generator even where there is ``wrk``.
    """
    wrk = None if own else program("wrk")
    if wrk is None:
        return _Clients(port, clients, keep_alive).run(seconds)
    return _wrk(wrk, port, ceil(seconds), clients, keep_alive)


def _wrk(wrk: str, port: int, seconds: int, clients: int, keep_alive: bool) -> Driven:
    command = [wrk, "-t1", f"-c{clients}", f"-d{seconds}s"]
    if not keep_alive:
        command += ["-H", "Connection: close"]
    command.append(f"http://127.0.0.1:{port}/")
    said = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=seconds + _PATIENCE
    ).stdout
    total = re.search(r"(\d+) requests in ([0-9.]+)(ms|s|m)", said)
    if total is None:
        raise RuntimeError(f"wrk said nothing that can be read:\n{said}")
    unit = {"ms": 0.001, "s": 1.0, "m": 60.0}[total[3]]
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    errors = re.search(r"Socket errors: (.*)", said)
    return Driven(
        answered=int(total[1]),
        refused=int(refused[1]) if refused else 0,
        errors=sum(map(int, re.findall(r"\d+", errors[1]))) if errors else 0,
        seconds=float(total[2]) * unit,
    )


class _Clients:
    """Our own; bounded by time only, since each client has one request at a time."""

    def __init__(self, port: int, clients: int, keep_alive: bool) -> None:
        self._address = ("127.0.0.1", port)
        self._clients = clients
        self._keep_alive = keep_alive
        connection = "keep-alive" if keep_alive else "close"
        self._request = (
            f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: {connection}\r\n\r\n"
        ).encode()
        self._selector = selectors.DefaultSelector()
        self._answered = self._refused = self._errors = 0

    def run(self, seconds: float) -> Driven:
        began = time.monotonic()
        for _ in range(self._clients):
            self._connect()
        while (now := time.monotonic()) < began + seconds:
            for key, _ in self._selector.select(began + seconds - now):
                self._read(key.fileobj, key.data)
        for key in list(self._selector.get_map().values()):
            self._close(key.fileobj)
        self._selector.close()
        return Driven(self._answered, self._refused, self._errors, time.monotonic() - began)

    def _connect(self) -> None:
        sock = socket.create_connection(self._address, _PATIENCE)
        self._selector.register(sock, selectors.EVENT_READ, bytearray())
        sock.sendall(self._request)

    def _close(self, sock: object) -> None:
        assert isinstance(sock, socket.socket)
        self._selector.unregister(sock)
        sock.close()

    def _read(self, sock: object, received: bytearray) -> None:
        assert isinstance(sock, socket.socket)
        try:
            data = sock.recv(65536)
        except OSError:
            data = b""
        received += data
        head, end, body = received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        whole = bool(end) and length is not None and len(body) >= int(length[1])
        if data and not whole:
            return
        if whole:
            self._answered += 1
            self._refused += received[9:10] not in b"23"
        else:
            self._errors += 1
        if whole and self._keep_alive and b"connection: close" not in head.lower():
            received.clear()
            sock.sendall(self._request)
        else:
            self._close(sock)
            self._connect()
