"""
The ``statsd`` package, taught the two things that gunicorn's statsd can do and it cannot.

It writes no DogStatsD tags, and its Unix client speaks a stream, while ``unix://`` in gunicorn
means datagrams. Its framing and its batches are used as they are. Importing this module needs
the extra ``gunicorn-admission[statsd]``.
"""

from __future__ import annotations

import socket

from gunicorn.util import is_ipv6
from statsd import StatsClient
from statsd.client.udp import Pipeline

__all__ = ["Address", "Batch", "Client", "UnixClient", "connect"]

#: ``(host, port)``, or the path of a Unix datagram socket.
Address = tuple[str, int] | str

#: Fits an Ethernet frame behind IP and UDP headers, so that no datagram is fragmented.
_DATAGRAM = 1432

#: Seconds that a Unix socket may block; a server that hangs lets its queue fill.
_PATIENCE = 0.2


class _Tagged:
    """Adds constant tags to each metric, behind what the package wrote."""

    _tags: str

    def _prepare(self, stat: str, value: str, rate: float) -> str | None:
        data: str | None = super()._prepare(stat, value, rate)  # type: ignore[misc]
        return f"{data}|#{self._tags}" if data and self._tags else data


class Batch(_Tagged, Pipeline):  # type: ignore[misc]
    """Metrics that leave together, in as few datagrams as hold them."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._tags = client._tags


class Client(_Tagged, StatsClient):  # type: ignore[misc]
    """
    A client over UDP. It resolves the host at once, and raises ``OSError`` when it cannot.

    Sending never raises: the package drops what the system refuses.
    """

    def __init__(self, host: str, port: int, prefix: str, tags: str) -> None:
        super().__init__(host, port, prefix or None, _DATAGRAM, ipv6=is_ipv6(host))
        self._tags = tags

    def pipeline(self) -> Batch:
        """Begin a batch; ``send()`` ends it."""
        return Batch(self)


class UnixClient(Client):
    """The same over a Unix datagram socket. The path is looked up again at each datagram."""

    def __init__(self, path: str, prefix: str, tags: str) -> None:
        # Not the parents' constructors: they would resolve a host.
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sock.settimeout(_PATIENCE)
        self._addr = path
        self._prefix = prefix or None
        self._maxudpsize = _DATAGRAM
        self._tags = tags


def connect(address: Address, prefix: str, tags: str) -> Client:
    """
    Make the client for an address.

    Args:
        address: See :data:`Address`.
        prefix: Stands before each name, with a dot; may be empty.
        tags: DogStatsD tags as gunicorn's ``dogstatsd_tags``; may be empty.

    Raises:
        OSError: When the host does not resolve.
    """
    if isinstance(address, str):
        return UnixClient(address, prefix, tags)
    return Client(*address, prefix, tags)
