"""
What admission adds to gunicorn: a trivial application with and without it, in turn.

    python -m benchmarks.gunicorn_overhead [--rounds 7] [--seconds 2] [--own] [--json FILE]

Every round starts each server anew, since two processes of the same program may differ by
a few percent for as long as they live.
"""

from __future__ import annotations

import argparse
import socket
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.closed_loop import drive
from benchmarks.comparison import Comparison, save, show
from benchmarks.processes import START_SECONDS, Server, end_on_sigterm, free_port, gunicorn

__all__ = ["measure"]

APP = "benchmarks.trivial:application"
THREADS = 16
CLIENTS = 8
CONNECTIONS = {"keep-alive": True, "new connections": False}
#: The limit adapts, but never below the clients: nobody waits, and what is left is the cost.
ROOMY = {"GUNICORN_ADMISSION_MIN_LIMIT": str(CLIENTS)}
HELD = {
    "GUNICORN_ADMISSION_LIMIT": "1",
    "GUNICORN_ADMISSION_MAX_QUEUE": "0",
    "GUNICORN_ADMISSION_STALL_AFTER": "3600",
}


class Figures(NamedTuple):
    """
    Of one load on one server.

    Attributes:
        per_second: Requests answered.
        cpu_us: CPU time of the server, a request.
        refused: Share of the answers.
    """

    per_second: float
    cpu_us: float
    refused: float


Results = dict[tuple[str, str], list[Figures]]
"""By server and by kind of connection, a figure a round."""


def measure(rounds: int, seconds: float, *, own: bool = False) -> list[Comparison]:
    """All figures of all rounds; ``own`` leaves ``wrk`` alone."""
    results: Results = defaultdict(list)
    for turn in range(rounds):
        names = ["plain", "admission", "refusing"]
        for name in names if turn % 2 == 0 else reversed(names):
            for kind, figures in _load(name, seconds, own).items():
                results[name, kind].append(figures)
    _doubt(results)
    return list(_compare(results))


def _load(name: str, seconds: float, own: bool) -> dict[str, Figures]:
    """Start one server, put each kind of load on it."""
    with _serving(name) as server:
        figures = {}
        for kind, keep_alive in CONNECTIONS.items():
            before = server.cost().cpu_seconds
            driven = drive(server.port, seconds, CLIENTS, keep_alive=keep_alive, own=own)
            used = server.cost().cpu_seconds - before
            if not driven.answered:
                raise RuntimeError(f"the server ({name}) answered nothing: {driven}")
            figures[kind] = Figures(
                driven.answered / driven.seconds,
                used / driven.answered * 1e6,
                driven.refused / driven.answered,
            )
        return figures


@contextmanager
def _serving(name: str) -> Iterator[Server]:
    """A server that is ready; the one named ``refusing`` has its only slot taken."""
    variables: Mapping[str, str] = HELD if name == "refusing" else ROOMY
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        command = gunicorn(APP, port, THREADS, admission=name != "plain")
        with Server([command], port, Path(folder), variables) as server:
            if name != "refusing":
                yield server
                return
            with socket.create_connection(("127.0.0.1", port)) as holder:
                holder.sendall(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
                deadline = time.monotonic() + START_SECONDS
                while server.status("/") != 503:
                    if time.monotonic() > deadline:
                        raise RuntimeError("the slot is held and yet nothing is refused")
                    time.sleep(0.01)
                yield server


def _doubt(results: Results) -> None:
    """Say so when a server did not do what is about to be compared."""
    for (name, kind), rounds in results.items():
        refused = max(figures.refused for figures in rounds)
        if name == "refusing":
            refused = 1 - min(figures.refused for figures in rounds)
        if refused:
            print(f"Note: {name}, {kind}: up to {refused:.2%} had the other answer.")


def _compare(results: Results) -> Iterator[Comparison]:
    pairs = (("admission", "200"), ("refusing", "503 at a held limit"))
    for name, answer in pairs:
        for kind in CONNECTIONS:
            for column, unit in (("per_second", "/s"), ("cpu_us", "us CPU")):
                yield Comparison(
                    what=f"gunicorn, {answer}, {kind}",
                    unit=unit,
                    ours=[getattr(figures, column) for figures in results[name, kind]],
                    peer="plain gthread, 200",
                    theirs=[getattr(figures, column) for figures in results["plain", kind]],
                )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each load")
    parser.add_argument("--own", action="store_true", help="our load generator, not wrk")
    parser.add_argument("--json", type=Path, help="write all rounds there")
    options = parser.parse_args()
    end_on_sigterm()
    comparisons = measure(options.rounds, options.seconds, own=options.own)
    show(comparisons)
    save(comparisons, options.json)


if __name__ == "__main__":
    main()
