"""Access logs as gunicorn writes them, of a service whose capacity is known."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from random import Random

__all__ = ["START", "Line", "served", "written"]

#: 2026-11-30 12:00:00 UTC.
START = 1_796_040_000.0
COMBINED = '%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s"'

Line = tuple[float, float, str]
"""End and length of a request in seconds, and its path."""


def served(
    rates: Iterable[tuple[float, float]],
    *,
    connections: int = 8,
    mean: float = 0.020,
    threads: int = 32,
    paths: tuple[str, ...] = ("/orders/1",),
    seed: int = 1,
) -> Iterator[Line]:
    """
    Yield what a worker with so many threads would log, in the order of the ends.

    Args:
        rates: Seconds and requests a second of each stretch.
        connections, mean: Of the database: calls at once, and their mean length in seconds.
        threads: Requests at once; those beyond wait where no log sees them.
    """
    random = Random(seed)
    free_connections = [START] * connections
    free_threads = [START] * threads
    lines: list[Line] = []
    now = START
    for seconds, rate in rates:
        until = now + seconds
        while (now := now + random.expovariate(rate)) < until:
            begins = max(now, heapq.heappop(free_threads))
            calls = max(begins, heapq.heappop(free_connections))
            ends = calls + random.lognormvariate(0, 0.3) * mean / 1.046
            heapq.heappush(free_connections, ends)
            heapq.heappush(free_threads, ends)
            lines.append((ends, ends - begins, random.choice(paths)))
        now = until
    yield from sorted(lines)


def written(lines: Iterable[Line], format: str = f"{COMBINED} %(L)s", status: int = 200) -> str:
    """The text of a log in some ``access_log_format``; each request is a GET."""
    return "".join(format % atoms(*line, status) + "\n" for line in lines)


def atoms(end: float, seconds: float, path: str, status: int = 200) -> dict[str, object]:
    """What gunicorn puts into a line."""
    whole, micro = divmod(round(seconds * 1e6), 1_000_000)
    stamp = datetime.fromtimestamp(int(end), UTC)
    return {
        "h": "127.0.0.1", "l": "-", "u": "-", "t": f"[{stamp:%d/%b/%Y:%H:%M:%S %z}]",
        "r": f"GET {path} HTTP/1.1", "s": str(status), "m": "GET", "U": path.partition("?")[0],
        "q": "", "H": "HTTP/1.1", "b": "2", "B": 2, "f": "-", "a": "curl/7.88", "T": whole,
        "D": whole * 1_000_000 + micro, "M": whole * 1000 + micro // 1000,
        "L": f"{whole}.{micro:06d}", "p": "<4242>", "{x-tier}i": "-",
    }  # fmt: skip
