"""Requests made beforehand, with bodies signed as webhook senders sign them."""

from __future__ import annotations

import hashlib
import hmac
import math
import random

from benchmarks.overload.plan import Kind, Plan

__all__ = ["ID_HEADER", "SECRET", "Requests", "signature"]

SECRET = b"benchmark"
ID_HEADER = "X-Request-Id"
_VARIANTS = 32


def signature(body: bytes) -> str:
    """What a sender puts into ``X-Signature``."""
    return "sha256=" + hmac.new(SECRET, body, hashlib.sha256).hexdigest()


class Requests:
    """All requests of one kind: only the id is filled in while the load runs."""

    def __init__(self, kind: Kind, plan: Plan, chance: random.Random) -> None:
        method = "GET" if kind.rate else "POST"
        connection = "keep-alive" if plan.keep_alive else "close"
        self._head = (
            f"{method} {kind.path} HTTP/1.1\r\nHost: 127.0.0.1:{plan.port}\r\n"
            f"Connection: {connection}\r\n{ID_HEADER}: "
        ).encode()
        self._tails = [b"\r\n\r\n"]
        if method == "POST":
            self._tails = [self._signed(plan.body, chance) for _ in range(_VARIANTS)]

    @staticmethod
    def _signed(sizes: tuple[int, int], chance: random.Random) -> bytes:
        low, high = map(math.log, sizes)
        body = chance.randbytes(int(math.exp(chance.uniform(low, high))) // 2).hex().encode()
        head = (
            f"\r\nContent-Type: application/json\r\nX-Signature: {signature(body)}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def numbered(self, id: int) -> bytes:
        """The bytes of one request."""
        return b"%b%d%b" % (self._head, id, self._tails[id % len(self._tails)])
