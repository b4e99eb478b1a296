"""Requests and answers over sockets, so that a test decides when it sends, reads and leaves."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["PATIENCE", "Exchange", "Response", "read_to_end", "send"]

PATIENCE = 10.0  # seconds until a wait gives up; generous, since only failures pay it


class Response(NamedTuple):
    """An answer read to its end. Header names are lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Exchange:
    """A request that was sent; the answer is read when the test asks for it."""

    def __init__(self, connection: socket.socket, method: str) -> None:
        self.connection = connection
        self._response = http.client.HTTPResponse(connection, method=method)
        self._begun = False

    def head(self, timeout: float = PATIENCE) -> int:
        """Read status and headers only, for streams; the status."""
        self.connection.settimeout(timeout)
        self._response.begin()
        self._begun = True
        return self._response.status

    def read(self, size: int) -> bytes:
        """Read exactly ``size`` bytes of the body, fewer at its end; after :meth:`head`."""
        return self._response.read(size)

    def response(self, timeout: float = PATIENCE, *, keep: bool = False) -> Response:
        """Read the whole answer; the connection is closed unless the test wants to keep it."""
        try:
            if not self._begun:
                self.head(timeout)
            headers = {name.lower(): value for name, value in self._response.getheaders()}
            return Response(self._response.status, headers, self._response.read())
        finally:
            if not keep:
                self.close()

    def close(self) -> None:
        """Close the connection, as a client does that gives up."""
        self._response.close()
        self.connection.close()


def send(
    connection: socket.socket, method: str, path: str, headers: Mapping[str, str], body: bytes
) -> Exchange:
    """Send one request with a Host and, where there is a body, a Content-Length."""
    fields = {"Host": "localhost", **headers}
    if body:
        fields.setdefault("Content-Length", str(len(body)))
    lines = [f"{method} {path} HTTP/1.1", *(f"{n}: {v}" for n, v in fields.items()), "", ""]
    connection.sendall("\r\n".join(lines).encode("latin-1") + body)
    return Exchange(connection, method)


def read_to_end(connection: socket.socket) -> bytes:
    """Read until the peer closes; a reset ends it too, with what had come."""
    received = bytearray()
    try:
        while chunk := connection.recv(65536):
            received += chunk
    except TimeoutError:
        raise AssertionError(f"connection not closed after {bytes(received)!r}") from None
    except ConnectionResetError:
        pass
    return bytes(received)
