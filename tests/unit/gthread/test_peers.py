"""Only the proxies that gunicorn trusts may say how long a request was under way."""

from __future__ import annotations

import pytest

from gunicorn_admission.gthread.peers import TrustedPeers


class Connection:
    """A socket that knows whom it leads to."""

    def __init__(self, peer: object) -> None:
        self._peer = peer

    def getpeername(self) -> object:
        if self._peer is None:
            raise OSError("not connected")
        return self._peer


@pytest.mark.parametrize(
    ("allowed", "peer", "trusted"),
    [
        (["127.0.0.1"], ("127.0.0.1", 5000), True),
        (["127.0.0.1"], ("192.0.2.7", 5000), False),
        (["192.0.2.0/24", "::1"], ("192.0.2.7", 5000), True),
        (["192.0.2.0/24", "::1"], ("::1", 5000, 0, 0), True),
        (["fe80::/10"], ("fe80::1%eth0", 5000, 0, 2), True),
        (["*"], ("192.0.2.7", 5000), True),
        ([], ("127.0.0.1", 5000), False),
        (["localhost"], ("127.0.0.1", 5000), False),
        ([], "", True),  # a Unix socket
        (["127.0.0.1"], None, False),  # has left
        (["127.0.0.1"], ("not an address", 1), False),
    ],
)
def test_peers(allowed: list[str], peer: object, trusted: bool) -> None:
    peers = TrustedPeers(allowed)
    assert peers.trusts(Connection(peer)) is trusted
    assert peers.trusts(Connection(peer)) is trusted  # from memory


def test_what_is_remembered_is_bounded() -> None:
    peers = TrustedPeers(["10.0.0.0/8"])
    for number in range(5000):
        assert peers.trusts(Connection((f"10.0.{number // 256}.{number % 256}", 1)))
    assert len(peers._known) <= 1024
