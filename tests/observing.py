"""What tests of observers share: snapshots, and a real statsd server's socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gunicorn_admission.core.statistics import DELAY_BUCKETS, PartitionStatistics, Statistics
from gunicorn_admission.observe.report import Report

__all__ = ["Datagrams", "PATIENCE", "delays", "idle", "listening", "partition", "report_of"]

#: Seconds after which what should have happened counts as failed.
PATIENCE = 10.0


def idle(**changes: Any) -> Statistics:
    """The snapshot of a limiter that has seen nothing, with some changes."""
    state: dict[str, Any] = {
        "limit": 0, "estimate": 0.0, "max_limit": 0, "inflight": 0, "waiting": 0,
        "overloaded": False, "paused": False, "closed": False, "mode": "enforce",
        "arrivals": 0, "granted": 0, "abandoned": 0, "bypassed": 0, "released_twice": 0,
        "leaked": 0, "granted_by_priority": {}, "shed": {}, "would_shed": {},
        "delay_buckets": (0,) * (len(DELAY_BUCKETS) + 1), "delay_sum_seconds": 0.0,
        "rtt_seconds": 0.0, "release_rate": 0.0, "stuck": 0, "partitions": {},
    }  # fmt: skip
    return Statistics(**state | changes)


def partition(**changes: Any) -> PartitionStatistics:
    """The snapshot of a class that has seen nothing, with some changes."""
    state: dict[str, Any] = {
        "inflight": 0, "waiting": 0, "cap": 0, "held": 0, "stalled": False,
        "oldest_seconds": 0.0, "granted": 0, "shed": 0,
    }  # fmt: skip
    return PartitionStatistics(**state | changes)


def delays(counts: Mapping[float, int]) -> tuple[int, ...]:
    """A histogram with counts at some of its bounds; ``inf`` is the rest."""
    return tuple(counts.get(bound, 0) for bound in (*DELAY_BUCKETS, float("inf")))


def report_of(now: Statistics, before: Statistics | None = None, seconds: float = 10.0) -> Report:
    """The report of one tick."""
    return Report.between(before, now, seconds)


class Datagrams:
    """A statsd server that only writes down what arrives."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.settimeout(PATIENCE)

    @property
    def address(self) -> Any:
        """``(host, port)`` or the path."""
        return self.sock.getsockname()

    def until(self, name: str) -> dict[str, list[str]]:
        """Receive until a metric of that name is in; return all, as ``value|type`` by name."""
        seen: dict[str, list[str]] = {}
        while name not in seen:
            try:
                data = self.sock.recv(65536)
            except TimeoutError:
                raise AssertionError(f"{name} did not arrive, but {sorted(seen)}") from None
            for line in data.decode("ascii").splitlines():
                key, _, rest = line.partition(":")
                seen.setdefault(key, []).append(rest)
        return seen

    def nothing(self) -> bool:
        """Whether nothing is there that was not read."""
        self.sock.setblocking(False)
        try:
            self.sock.recv(65536)
        except BlockingIOError:
            return True
        finally:
            self.sock.settimeout(PATIENCE)
        return False


@contextmanager
def listening(path: Path | None = None) -> Iterator[Datagrams]:
    """Open a server on a free UDP port of 127.0.0.1, or on a Unix datagram socket."""
    family = socket.AF_INET if path is None else socket.AF_UNIX
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0) if path is None else str(path))
        yield Datagrams(sock)
