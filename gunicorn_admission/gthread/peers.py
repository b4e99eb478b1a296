"""Which peers gunicorn trusts with headers about a request: ``forwarded_allow_ips``."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

__all__ = ["TrustedPeers"]

_MOST_KNOWN = 1024


class TrustedPeers:
    """
    Tells the proxies in front from everybody else.

    Args:
        allowed: Addresses, networks or ``*``, as gunicorn's setting has them.

    Thread safety: any thread; an answer may be worked out twice.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        entries = tuple(allowed)
        self._everybody = "*" in entries
        self._networks: list[IPv4Network | IPv6Network] = []
        for entry in entries:
            with suppress(ValueError):  # old versions of gunicorn take anything, and match text
                self._networks.append(ip_network(entry, strict=False))
        self._known: dict[str, bool] = {}

    def trusts(self, sock: Any) -> bool:
        """Whether a connection comes from one; Unix sockets do, as in gunicorn itself."""
        if self._everybody:
            return True
        try:
            peer = sock.getpeername()
        except OSError:
            return False  # it has left
        if not isinstance(peer, tuple):
            return True
        address = str(peer[0])
        known = self._known.get(address)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[address] = self._is_allowed(address)
        return known

    def _is_allowed(self, address: str) -> bool:
        try:
            found = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        return any(found in network for network in self._networks)
