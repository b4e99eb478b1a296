"""Access logs as gunicorn writes them, of a service whose capacity is known."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from random import Random

__all__ = ["COMBINED", "START", "Line", "served", "written"]

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
    contention: float = 0.0,
    threads: int = 32,
    paths: tuple[str, ...] = ("/orders/1",),
    seed: int = 1,
) -> Iterator[Line]:
    """
    Yield what a worker with so many threads would log, in the order of the ends.

    Args:
        rates: Seconds and requests a second of each stretch.
        connections, mean: Of the database: calls at once, and their mean length in seconds.
        contention: Each call in line makes those that begin slower by this part.
        threads: Requests at once; those beyond wait where no log sees them.
    """
    random = Random(seed)
    arrivals = list(_arrivals(rates, random))[::-1]
    outside: deque[None] = deque()
    line: deque[float] = deque()  # begin of each request that waits for a connection
    calls: list[tuple[float, float]] = []  # end and begin of those that do not
    while arrivals or calls:
        if arrivals and (not calls or arrivals[-1] < calls[0][0]):
            now = arrivals.pop()
            outside.append(None)
        else:
            now, began = heapq.heappop(calls)
            yield now, now - began, random.choice(paths)
        while outside and len(line) + len(calls) < threads:
            outside.pop()
            line.append(now)
        while line and len(calls) < connections:
            began = line.popleft()
            slower = 1 + contention * len(line)
            took = random.lognormvariate(-(0.3**2) / 2, 0.3) * mean * slower
            heapq.heappush(calls, (now + took, began))


def _arrivals(rates: Iterable[tuple[float, float]], random: Random) -> Iterator[float]:
    begin = START
    for seconds, rate in rates:
        now = begin
        while (now := now + random.expovariate(rate)) < begin + seconds:
            yield now
        begin += seconds


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
