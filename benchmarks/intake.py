"""
What the intake takes in: events a second and how long a sender waits, while three consumers work.

    python -m benchmarks.intake [--seconds 5] [--processes 1,2] [--stores sqlite,postgresql]

Real gunicorn, real signatures, one durable commit for each event. The bare insert beside it is one
SQLite connection that does nothing but commit a row like it, in the same run on the same disk.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import selectors
import socket
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from benchmarks.intake_app import SECRET
from benchmarks.processes import Server, end_on_sigterm, free_port, gunicorn
from gunicorn_admission.webhooks.fanout.subscriptions import Subscriptions
from gunicorn_admission.webhooks.store import Store

__all__ = ["Figures", "measure"]

THREADS = 16
CONSUMERS = ("entitlements", "invoice-projection", "usage-analytics")
PATIENCE = 15.0


@dataclass(frozen=True)
class Figures:
    """
    Of one load.

    Attributes:
        store, processes: What was measured.
        events: Answered 200 a second.
        p50, p99, p999, worst: Milliseconds until the answer.
        others: Other answers than 200, and broken connections.
        bare: Rows that a bare SQLite connection committed a second, before and after.
    """

    store: str
    processes: int
    events: float
    p50: float
    p99: float
    p999: float
    worst: float
    others: int
    bare: float


def measure(store: str, processes: int, seconds: float, clients: int, size: int) -> Figures:
    """Put a closed load on one server; three consumers work meanwhile."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        url = running.enter_context(_database(store, Path(folder)))
        with Store(url) as opened:
            opened.upgrade()
            for name in CONSUMERS:
                Subscriptions(opened).create(name)
        before = bare(Path(folder), size)
        port = free_port()
        command = gunicorn(
            "benchmarks.intake_app:application", port, THREADS, "--workers", str(processes)
        )
        consumers = [[sys.executable, "-m", "benchmarks.intake_consumer", n] for n in CONSUMERS]
        variables = {"GUNICORN_ADMISSION_STORE_URL": url}
        running.enter_context(Server([command, *consumers], port, Path(folder), variables))
        Load(port, clients, size).run(min(seconds, 1.0))  # the first requests open the store
        load = Load(port, clients, size, first=1_000_000_000)
        took = load.run(seconds)
        running.close()
        after = bare(Path(folder), size) if store == "sqlite" else before
    waits = sorted(load.waits)
    if not waits:
        raise RuntimeError(f"nothing was answered 200, {load.others} otherwise")

    def at(share: float) -> float:
        return waits[min(len(waits) - 1, int(share * len(waits)))] * 1000

    return Figures(
        store=store,
        processes=processes,
        events=len(waits) / took,
        p50=at(0.5),
        p99=at(0.99),
        p999=at(0.999),
        worst=waits[-1] * 1000,
        others=load.others,
        bare=(before + after) / 2,
    )


def bare(folder: Path, size: int, seconds: float = 0.5) -> float:
    """Rows that one SQLite connection commits a second, durably, each in its own transaction."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS event (id INTEGER PRIMARY KEY, body BLOB)")
    body, done, began = b"x" * size, 0, time.monotonic()
    while time.monotonic() < began + seconds:
        connection.execute("INSERT INTO event (body) VALUES (?)", (body,))
        done += 1
    took = time.monotonic() - began
    connection.close()
    return done / took


@contextmanager
def _database(store: str, folder: Path) -> Iterator[str]:
    if store == "sqlite":
        yield f"sqlite:///{folder}/webhooks.db"
        return
    from tests.postgres import PostgreSQL, programs

    found = programs()
    if found is None:
        raise RuntimeError("no PostgreSQL on this machine; try --stores sqlite")
    with PostgreSQL(found, {}) as server:  # its own settings: every commit reaches the disk
        yield server.url(server.create())


class Load:
    """
    So many clients, each of which posts a new event as soon as the last one was answered.

    Args:
        port: Of the server.
        clients: Connections at once, which are kept.
        size: Bytes of a body.
        first: Number of the first event.
    """

    def __init__(self, port: int, clients: int, size: int, first: int = 0) -> None:
        self.waits: list[float] = []
        self.others = 0
        self._address = ("127.0.0.1", port)
        self._clients = clients
        self._numbers = count(first)
        self._padding = "x" * max(0, size - 40)
        self._selector = selectors.DefaultSelector()

    def run(self, seconds: float) -> float:
        """Load the server; how long it took."""
        began = time.monotonic()
        for _ in range(self._clients):
            self._connect()
        while (now := time.monotonic()) < began + seconds:
            for key, _ in self._selector.select(began + seconds - now):
                assert isinstance(key.fileobj, socket.socket)
                self._read(key.fileobj, key.data)
        took = time.monotonic() - began
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            self._close(key.fileobj)
        self._selector.close()
        return took

    def _request(self) -> bytes:
        number = next(self._numbers)
        body = f'{{"number": {number}, "padding": "{self._padding}"}}'.encode()
        signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        lines = (
            "POST /hooks/git HTTP/1.1",
            "Host: hooks.test",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "X-GitHub-Event: push",
            f"X-GitHub-Delivery: {number}",
            f"X-Hub-Signature-256: sha256={signature}",
        )
        return "\r\n".join((*lines, "", "")).encode() + body

    def _connect(self) -> None:
        sock = socket.create_connection(self._address, PATIENCE)
        request = self._request()
        self._selector.register(sock, selectors.EVENT_READ, [time.monotonic(), bytearray()])
        sock.sendall(request)

    def _close(self, sock: socket.socket) -> None:
        self._selector.unregister(sock)
        sock.close()

    def _read(self, sock: socket.socket, state: list[object]) -> None:
        sent_at, received = state
        assert isinstance(sent_at, float)
        assert isinstance(received, bytearray)
        try:
            data = sock.recv(65536)
        except OSError:
            data = b""
        received += data
        if data and not received.endswith(b"}\n"):
            return
        if received[9:12] == b"200":
            self.waits.append(time.monotonic() - sent_at)
        else:
            self.others += 1
        if not data or b"connection: close" in received.lower():
            self._close(sock)
            self._connect()
            return
        request = self._request()
        state[:] = [time.monotonic(), bytearray()]
        sock.sendall(request)


def show(all_figures: list[Figures]) -> None:
    """Print the table."""
    print(
        "| store | processes | events/s | p50 ms | p99 ms | p99.9 ms | worst ms | other answers "
        "| of a bare insert |\n|---|---|---|---|---|---|---|---|---|"
    )
    for one in all_figures:
        waits = " | ".join(f"{ms:.1f}" for ms in (one.p50, one.p99, one.p999, one.worst))
        print(
            f"| {one.store} | {one.processes} | {one.events:.0f} | {waits} | {one.others} "
            f"| {one.events / one.bare:.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load")
    parser.add_argument("--processes", default="1,2")
    parser.add_argument("--stores", default="sqlite,postgresql")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--size", type=int, default=2048, help="bytes of a body")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    end_on_sigterm()
    figures = [
        measure(store, int(processes), options.seconds, options.clients, options.size)
        for store in options.stores.split(",")
        for processes in options.processes.split(",")
    ]
    show(figures)
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in figures], indent=2) + "\n")


if __name__ == "__main__":
    main()
