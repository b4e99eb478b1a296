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
from pathlib import Path
from typing import NamedTuple, TextIO

from scenario import HEALTH, HEALTH_PATIENCE, HEALTH_RATE, KINDS, SEED, Kind, Phase, phases

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


class Arrival(NamedTuple):
    """When a request is due, of which kind, and how long its client will wait."""

    at: float
    kind: Kind
    patience: float


class Client:
    """One request under way."""

    def __init__(self, id: int, arrival: Arrival, sent: float, port: int) -> None:
        self.id, self.arrival, self.sent, self.port = id, arrival, sent, port
        kind = arrival.kind
        body = b'{"demo": true}' if kind.method == "POST" else b""
        self.request = (
            f"{kind.method} /{kind.name} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Demo-Id: {id}\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode() + body
        self.answer = b""
        self.ended = False
        self.socket = socket.socket()
        self.socket.setblocking(False)

    def connect(self) -> bool:
        """Begin to connect; whether that is under way."""
        return self.socket.connect_ex(("127.0.0.1", self.port)) in (0, errno.EINPROGRESS)

    def send(self) -> None:
        """The connection stands: a request this small goes out whole."""
        self.socket.send(self.request)

    def receive(self) -> str | None:
        """Read what has come: the outcome once the answer is whole, else None."""
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


def arrivals(plan: tuple[Phase, ...]) -> list[Arrival]:
    """Poisson arrivals of the mix, and health checks at a fixed rate, in order."""
    chance = random.Random(SEED)
    shares = [kind.share for kind in KINDS]
    due = []
    for phase in plan:
        at = phase.start + chance.expovariate(phase.rate)
        while at < phase.end:
            due.append(Arrival(at, chance.choices(KINDS, shares)[0], phase.patience))
            at += chance.expovariate(phase.rate)
    for tick in range(1, int(plan[-1].end * HEALTH_RATE)):
        due.append(Arrival(tick / HEALTH_RATE, HEALTH, HEALTH_PATIENCE))
    return sorted(due)


class Generator:
    """Sends the arrivals on time, gives up when patience ends, writes a line for each."""

    def __init__(self, port: int, out: TextIO, control: Path, plan: tuple[Phase, ...]) -> None:
        self.port, self.out, self.control = port, out, control
        self.selector = selectors.DefaultSelector()
        self.due = deque(arrivals(plan))
        self.phases = deque(plan)
        # One queue for each patience is in the order in which its clients give up.
        self.waiting = {arrival.patience: deque[Client]() for arrival in self.due}
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
            while self.due and self.due[0].at <= now:
                self.start(self.due.popleft(), now)
            self.expire(now)
            for key, _ in self.selector.select(self.pause(now)):
                self.advance(key.data)

    def pause(self, now: float) -> float:
        """Seconds until the next arrival; expiry is checked at least ten times a second."""
        return max(0.0, min(0.1, self.due[0].at - now if self.due else 0.1))

    def start(self, arrival: Arrival, now: float) -> None:
        self.started += 1
        self.open += 1
        client = Client(self.started, arrival, now, self.port)
        self.selector.register(client.socket, selectors.EVENT_WRITE, client)
        self.waiting[arrival.patience].append(client)
        if not client.connect():
            self.finish(client, "broken")

    def advance(self, client: Client) -> None:
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
            while clients and (clients[0].ended or clients[0].arrival.at + patience <= now):
                if not (client := clients.popleft()).ended:
                    self.finish(client, "gave_up")

    def finish(self, client: Client, outcome: str) -> None:
        self.selector.unregister(client.socket)
        client.socket.close()
        client.ended = True
        self.open -= 1
        ended = time.monotonic() - self.zero
        due, kind, _ = client.arrival
        record = Record(client.id, kind.name, due, client.sent, ended, outcome)
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
