"""
An open-loop load generator: arrivals are fixed in advance and wait for nobody.

Every time is counted from the scheduled arrival, so neither a slow server nor a late
generator can hide delay. One process, one selector loop, a new connection a request;
a client that has waited as long as its patience closes and is gone.

    python load.py PORT FOLDER [--quick]    # writes FOLDER/requests
"""

from __future__ import annotations

import errno
import random
import re
import selectors
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

from scenario import HEALTH, HEALTH_RATE, KINDS, SEED, Kind, Phase, phases

__all__ = ["Record", "read"]

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
LEAD = 0.3  # seconds between start and the first phase
FLUSH = 0.2


class Record(NamedTuple):
    """
    One finished request; times are seconds since the first phase began.

    ``outcome`` is served (2xx in time), refused (503 or 429), failed (another status),
    gave_up (the client's patience ended) or broken (connection refused or reset).
    """

    id: int
    kind: str
    scheduled: float
    sent: float
    ended: float
    outcome: str


class Client:
    """One request under way."""

    def __init__(self, id: int, kind: Kind, scheduled: float, port: int) -> None:
        self.id, self.kind, self.scheduled = id, kind, scheduled
        body = b'{"demo": true}' if kind.method == "POST" else b""
        self.request = (
            f"{kind.method} /{kind.name} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Demo-Id: {id}\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode() + body
        self.answer = b""
        self.sent = 0.0
        self.socket: socket.socket | None = None

    def connect(self, port: int) -> int:
        """Begin to connect; the error number, or 0 when that is under way."""
        self.socket = socket.socket()
        self.socket.setblocking(False)
        error = self.socket.connect_ex(("127.0.0.1", port))
        return 0 if error == errno.EINPROGRESS else error

    def send(self) -> None:
        """The connection stands: a request this small goes out whole."""
        assert self.socket is not None
        self.socket.send(self.request)

    def receive(self) -> str | None:
        """Read what has come: the outcome once the answer is whole, else None."""
        assert self.socket is not None
        data = self.socket.recv(65536)
        self.answer += data
        head, end, body = self.answer.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if end and (not data or (length and len(body) >= int(length[1]))):
            status = int(head.split(b" ", 2)[1])
            if status < 300:
                return "served"
            return "refused" if status in (429, 503) else "failed"
        return None if data else "broken"


def arrivals(plan: tuple[Phase, ...]) -> Iterator[tuple[float, Kind]]:
    """Poisson arrivals of the mix, and health checks at a fixed rate; not yet in order."""
    chance = random.Random(SEED)
    shares = [kind.share for kind in KINDS]
    for phase in plan:
        at = phase.start + chance.expovariate(phase.rate)
        while at < phase.end:
            yield at, chance.choices(KINDS, shares)[0]
            at += chance.expovariate(phase.rate)
    for tick in range(1, int(plan[-1].end * HEALTH_RATE)):
        yield tick / HEALTH_RATE, HEALTH


class Generator:
    """Sends the arrivals on time, gives up when patience ends, writes a line for each."""

    def __init__(self, port: int, out: TextIO, control: Path, plan: tuple[Phase, ...]) -> None:
        self.port, self.out, self.control = port, out, control
        self.selector = selectors.DefaultSelector()
        self.waiting = {kind.patience: deque[Client]() for kind in (*KINDS, HEALTH)}
        self.due = deque(sorted(arrivals(plan)))
        self.phases = deque(plan)
        self.open = 0
        self.started = 0

    def run(self) -> None:
        """Return when every request has an outcome."""
        self.zero = time.monotonic() + LEAD
        self.out.write(f"{self.zero!r}\n")
        flushed = 0.0
        while self.due or self.open:
            now = time.monotonic() - self.zero
            if now - flushed > FLUSH:
                self.out.flush()
                flushed = now
            if self.phases and self.phases[0].start <= now:
                self.control.write_text(self.phases.popleft().database)
            while self.due and self.due[0][0] <= now:
                self.start(*self.due.popleft(), now)
            self.expire(now)
            for key, _ in self.selector.select(self.pause(now)):
                self.advance(key.data)

    def pause(self, now: float) -> float:
        """Seconds until the next arrival; expiry is checked at least ten times a second."""
        return max(0.0, min(0.1, self.due[0][0] - now if self.due else 0.1))

    def start(self, scheduled: float, kind: Kind, now: float) -> None:
        self.started += 1
        client = Client(self.started, kind, scheduled, self.port)
        client.sent = now
        self.open += 1
        if client.connect(self.port) or client.socket is None:
            self.finish(client, "broken", registered=False)
            return
        self.selector.register(client.socket, selectors.EVENT_WRITE, client)
        self.waiting[kind.patience].append(client)

    def advance(self, client: Client) -> None:
        assert client.socket is not None
        try:
            if self.selector.get_key(client.socket).events == selectors.EVENT_WRITE:
                client.send()
                self.selector.modify(client.socket, selectors.EVENT_READ, client)
            elif outcome := client.receive():
                self.finish(client, outcome)
        except OSError:
            self.finish(client, "broken")

    def expire(self, now: float) -> None:
        for patience, clients in self.waiting.items():
            while clients and (clients[0].socket is None or clients[0].scheduled + patience <= now):
                client = clients.popleft()
                if client.socket is not None:
                    self.finish(client, "gave_up")

    def finish(self, client: Client, outcome: str, *, registered: bool = True) -> None:
        assert client.socket is not None
        if registered:
            self.selector.unregister(client.socket)
        client.socket.close()
        client.socket = None
        self.open -= 1
        ended = time.monotonic() - self.zero
        record = Record(client.id, client.kind.name, client.scheduled, client.sent, ended, outcome)
        self.out.write(" ".join(map(str, record)) + "\n")


def read(line: str) -> Record:
    """Take back one line of the file that the generator wrote."""
    id, kind, scheduled, sent, ended, outcome = line.split()
    return Record(int(id), kind, float(scheduled), float(sent), float(ended), outcome)


def main(port: str, folder: str, *options: str) -> None:
    with Path(folder, "requests").open("w") as out:
        plan = phases("--quick" in options)
        Generator(int(port), out, Path(folder, "control"), plan).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
