"""The ways on which a request reaches gunicorn: transports, PROXY headers, real proxies."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from gunicorn.config import make_settings

from tests.integration import proxies
from tests.integration.admission import running
from tests.integration.certificate import make_certificate
from tests.integration.server import Gunicorn
from tests.integration.wire import PATIENCE, Exchange, Response, send

__all__ = ["DIRECT", "PROXIED", "PROXY_ON", "PROXY_V1", "Way", "open_way"]

#: gunicorn knows version 2 of the PROXY protocol since the setting names versions.
_KNOWS_V2 = not isinstance(make_settings()["proxy_protocol"].default, bool)
PROXY_ON = ("--proxy-protocol", "auto") if _KNOWS_V2 else ("--proxy-protocol",)
PROXY_V1 = b"PROXY TCP4 192.0.2.1 192.0.2.2 1000 2000\r\n"
_V2 = (
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11"
    + struct.pack("!H", 12)
    + socket.inet_aton("192.0.2.1")
    + socket.inet_aton("192.0.2.2")
    + struct.pack("!HH", 1000, 2000)
)

DIRECT = ("tcp", "unix", "tls", "proxy-v1", *(["proxy-v2"] if _KNOWS_V2 else []))
PROXIED = ("nginx", "nginx-unbuffered", "haproxy", "haproxy-proxy-v1")


class Way(NamedTuple):
    """
    One way to a server.

    Attributes:
        name: One of :data:`DIRECT` or :data:`PROXIED`.
        server: gunicorn at its end.
        connect: Opens a connection on which a request may be written at once.
    """

    name: str
    server: Gunicorn
    connect: Callable[[], socket.socket]

    @property
    def direct(self) -> bool:
        """Whether no proxy answers in gunicorn's place."""
        return self.name in DIRECT

    def send(self, path: str, **request: Any) -> Exchange:
        """Send a request; arguments as :meth:`Gunicorn.send`."""
        connection = request.pop("connection", None) or self.connect()
        method, headers = request.pop("method", "GET"), request.pop("headers", {})
        return send(connection, method, path, headers, request.pop("body", b""))

    def get(self, path: str, **request: Any) -> Response:
        """Send a request and read its answer."""
        return self.send(path, **request).response()


@contextlib.contextmanager
def open_way(name: str, directory: Path, *args: str, conf: str) -> Iterator[Way]:
    """Start a server and what stands in front of it."""
    options: dict[str, Any] = {"bind": "unix" if name == "unix" else "tcp"}
    if name == "tls":
        certificate = make_certificate(directory)
        args = (*args, *certificate.arguments)
        options["tls"] = certificate.context()
    if "proxy-v" in name:
        args = (*args, *PROXY_ON)
    with running(directory, *args, conf=conf, **options) as server, contextlib.ExitStack() as stack:
        connect: Callable[[], socket.socket] = server.connect
        if name in ("proxy-v1", "proxy-v2"):
            header = PROXY_V1 if name == "proxy-v1" else _V2
            connect = _after(server.connect, header)
        elif name in PROXIED:
            port = stack.enter_context(_proxy(name, directory, _address(server)))
            connect = partial(socket.create_connection, ("127.0.0.1", port), PATIENCE)
        yield Way(name, server, connect)


def _address(server: Gunicorn) -> tuple[str, int]:
    with server.connect() as connection:
        host, port = connection.getpeername()
        return host, port


def _proxy(
    name: str, directory: Path, upstream: tuple[str, int]
) -> contextlib.AbstractContextManager[int]:
    own = directory / "proxy"
    own.mkdir()
    if name.startswith("nginx"):
        return proxies.nginx(own, upstream, buffering=name == "nginx")
    return proxies.haproxy(own, upstream, "send-proxy" if "proxy-v" in name else "")


def _after(connect: Callable[[], socket.socket], header: bytes) -> Callable[[], socket.socket]:
    def opened() -> socket.socket:
        connection = connect()
        connection.sendall(header)
        return connection

    return opened
