"""
A statsd server in one file: receives on loopback, draws gunicorn's admission gauges live.

    python dashboard.py [--port 8125] [--seconds 60]

In a terminal it redraws a table twice a second; elsewhere it prints a line a second.
"""

from __future__ import annotations

import argparse
import re
import socket
import time
from collections import defaultdict, deque

from rich.console import Console
from rich.live import Live
from rich.table import Table

PREFIX = "gunicorn."
SHOWN = ("limit", "inflight", "queue", "overloaded")
BARS = " ▁▂▃▄▅▆▇█"
HISTORY = 60
REDRAW = 0.5


class Numbers:
    """The last value of each gauge with its history, and the sum of each counter."""

    def __init__(self) -> None:
        self.gauges: dict[str, float] = {}
        self.counters: defaultdict[str, float] = defaultdict(float)
        self.history: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=HISTORY))

    def feed(self, packet: bytes) -> None:
        """Take in one datagram of ``name:value|type[|@rate]`` lines; bad lines are ignored."""
        for line in packet.decode("ascii", "replace").splitlines():
            name, _, rest = line.partition(":")
            value, _, kind = rest.partition("|")
            kind, _, options = kind.partition("|")
            try:
                number = float(value)
                rate = float(options[1:]) if options.startswith("@") else 1.0
            except ValueError:
                continue
            if kind == "g":
                # A sign makes it a change of the gauge, by the statsd convention.
                before = self.gauges.get(name, 0.0) if value[0] in "+-" else 0.0
                self.gauges[name] = before + number
            elif kind == "ms":
                self.gauges[f"{name} (last, ms)"] = number
            elif kind == "c":
                self.counters[name] += number / rate

    def remember(self) -> None:
        """Add the gauges of this moment to the history."""
        for name, value in self.gauges.items():
            self.history[name].append(value)


def sparkline(values: deque[float]) -> str:
    """The history as a row of bars, the highest value as a full one."""
    top = max(values, default=0.0) or 1.0
    return "".join(BARS[round(max(0.0, value) / top * (len(BARS) - 1))] for value in values)


def draw(numbers: Numbers) -> Table:
    """Gauges with their past, then counters."""
    table = Table(title="gunicorn admission", caption="Ctrl-C ends it", min_width=60)
    table.add_column("metric")
    table.add_column("now", justify="right")
    table.add_column("last 30 seconds", width=HISTORY, no_wrap=True)
    for name, value in sorted(numbers.gauges.items()):
        table.add_row(name.removeprefix(PREFIX), f"{value:g}", sparkline(numbers.history[name]))
    table.add_section()
    for name, value in sorted(numbers.counters.items()):
        table.add_row(name.removeprefix(PREFIX), f"{value:g}", "")
    return table


def line(numbers: Numbers) -> str:
    """The gauges that matter most, summed over workers, and everything refused so far."""
    texts = []
    for key in SHOWN:
        workers = re.compile(rf"gunicorn\.admission\.(worker\.[^.]+\.)?{key}")
        found = [value for name, value in numbers.gauges.items() if workers.fullmatch(name)]
        texts.append(f"{key}={sum(found):g}")
    texts.append(f"shed={numbers.counters['gunicorn.admission.shed']:g}")
    return "  ".join(texts)


def receive(server: socket.socket, numbers: Numbers, until: float) -> None:
    """Take in datagrams until a moment of the monotonic clock."""
    while (left := until - time.monotonic()) > 0:
        server.settimeout(left)
        try:
            numbers.feed(server.recv(65536))
        except TimeoutError:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0].strip())
    parser.add_argument("--port", type=int, default=8125, help="0 picks a free one")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    options = parser.parse_args()
    console, numbers = Console(), Numbers()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", options.port))
        print("listening on {}:{}".format(*server.getsockname()), flush=True)
        end = time.monotonic() + options.seconds
        with Live(console=console, auto_refresh=False) as live:
            while time.monotonic() < end:
                receive(server, numbers, time.monotonic() + REDRAW)
                numbers.remember()
                if console.is_terminal:
                    live.update(draw(numbers), refresh=True)
                else:
                    print(line(numbers), flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
