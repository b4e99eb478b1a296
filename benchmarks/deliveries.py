"""
Deliveries a second: claim, effect, acknowledgement; and whether one consumer slows another.

    python -m benchmarks.deliveries [--rounds 3] [--events 2000] [--only sqlite,postgresql]
                                    [--json FILE]

A worker of one process, four threads for each consumer, a handler that does nothing, a backlog that
is there from the beginning. Then the same with a gate that has room. Then entitlements, fed at a
steady rate, beside an analytics consumer whose handlers hang, against one whose handlers return.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.comparison import Comparison, interleaved, save, show
from benchmarks.processes import end_on_sigterm
from gunicorn_admission.webhooks.fanout import Consumers, Event, Subscriptions, Worker
from gunicorn_admission.webhooks.gates import Ceiling, GatePolicy, configure
from gunicorn_admission.webhooks.store import Store
from tests.fanning import put
from tests.postgres import PostgreSQL, programs

__all__ = ["measure"]

ENGINES = ("sqlite", "postgresql")
THREADS = 4
CONSUMERS = (1, 2, 4)
PACE = 0.01  # seconds between events, where the lag is measured
PATIENCE = 300.0


def measure(rounds: int, events: int, engines: Sequence[str] = ENGINES) -> list[Comparison]:
    """Measure everything on each engine, in each round on fresh databases."""
    found: list[Comparison] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for engine in engines:
            server = None
            if engine == "postgresql":
                binaries = programs()
                if binaries is None:
                    print("Note: no PostgreSQL here; left out.")
                    continue
                server = stack.enter_context(PostgreSQL(binaries))
            found += _measure(engine, server, folder, rounds, events)
    return found


def _measure(
    engine: str, server: PostgreSQL | None, folder: Path, rounds: int, events: int
) -> list[Comparison]:
    def rate(consumers: int, gated: bool = False) -> float:
        with _store(server, folder) as store:
            return _rate(store, consumers, events, gated)

    def lag(blocked: bool) -> float:
        with _store(server, folder) as store:
            return _lag(store, min(events, 500), blocked)

    contenders: dict[str, Callable[[], float]] = {
        str(count): lambda count=count: rate(count) for count in CONSUMERS
    }
    contenders["gate"] = lambda: rate(1, gated=True)
    rates = interleaved(contenders, rounds)
    lags = interleaved({"free": lambda: lag(False), "blocked": lambda: lag(True)}, rounds)
    one = rates["1"]
    return [
        *(
            Comparison(
                what=f"{engine}, {count} consumers",
                unit="deliveries/s",
                ours=rates[str(count)],
                peer="1 consumer" if count > 1 else "",
                theirs=one if count > 1 else (),
            )
            for count in CONSUMERS
        ),
        Comparison(
            what=f"{engine}, with a gate",
            unit="deliveries/s",
            ours=rates["gate"],
            peer="no gate",
            theirs=one,
        ),
        Comparison(
            what=f"{engine}, p99 lag of entitlements, analytics hangs",
            unit="ms",
            ours=lags["blocked"],
            peer="analytics returns",
            theirs=lags["free"],
        ),
    ]


@contextmanager
def _store(server: PostgreSQL | None, folder: Path) -> Iterator[Store]:
    with tempfile.TemporaryDirectory(dir=folder) as own, ExitStack() as stack:
        if server is None:
            url = f"sqlite:///{own}/webhooks.db"
        else:
            name = server.create()
            stack.callback(server.drop, name)
            url = server.url(name)
        with Store(url) as store:
            store.upgrade()
            yield store


def _rate(store: Store, count: int, events: int, gated: bool) -> float:
    """Deliveries a second of so many consumers."""
    consumers, names = Consumers(), [f"consumer-{n}" for n in range(count)]
    done, left = threading.Event(), [events * count]
    lock = threading.Lock()

    def observe(_: str, outcome: str, times: int) -> None:
        if outcome == "completed":
            with lock:
                left[0] -= times
            if left[0] == 0:
                done.set()

    for name in names:
        Subscriptions(store).create(name)
        consumers.consumer(name, concurrency=THREADS)(lambda event: None)
        if gated:
            policy = GatePolicy([Ceiling(10**9, "requests", per="day")])
            store.write(
                lambda connection, name=name, policy=policy: configure(
                    connection, name, policy, now=store.now()
                )
            )
    for begin in range(0, events, 500):
        put(store, *(f"e{n}" for n in range(begin, min(begin + 500, events))))
    worker = Worker(store, consumers, observe=observe, poll=0.05)
    begun = time.perf_counter()
    worker.start()
    try:
        if not done.wait(PATIENCE):
            raise RuntimeError(f"{left[0]} deliveries are left")
        return events * count / (time.perf_counter() - begun)
    finally:
        worker.stop()
        worker.join(30)


def _lag(store: Store, events: int, blocked: bool) -> float:
    """Milliseconds from an event's arrival to its handler, at the 99th percentile."""
    consumers, lags = Consumers(), list[float]()
    over, done = threading.Event(), threading.Event()

    @consumers.consumer("entitlements", concurrency=THREADS)
    def entitlements(event: Event) -> None:
        lags.append(time.time() * 1e3 - event.received_at / 1e3)
        if len(lags) == events:
            done.set()

    @consumers.consumer("analytics", concurrency=THREADS)
    def analytics(event: Event) -> None:
        if blocked:
            over.wait(PATIENCE)

    for name in ("entitlements", "analytics"):
        Subscriptions(store).create(name)
    worker = Worker(store, consumers, poll=0.05)
    worker.start()
    try:
        for n in range(events):
            put(store, f"e{n}")
            time.sleep(PACE)
        if not done.wait(PATIENCE):
            raise RuntimeError("entitlements did not get everything")
        return sorted(lags)[int(len(lags) * 0.99)]
    finally:
        over.set()
        worker.stop()
        worker.join(30)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--events", type=int, default=2000, help="for each consumer")
    parser.add_argument("--only", default=",".join(ENGINES), help="engines")
    parser.add_argument("--json", type=Path, help="write all rounds there")
    options = parser.parse_args()
    unknown = set(options.only.split(",")) - set(ENGINES)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: the engines are {' and '.join(ENGINES)}")
    end_on_sigterm()
    comparisons = measure(options.rounds, options.events, options.only.split(","))
    show(comparisons)
    save(comparisons, options.json)


if __name__ == "__main__":
    main()
