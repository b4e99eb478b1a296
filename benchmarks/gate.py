"""
What a gate costs an event: admission and completion, under ceilings and without.

    python -m benchmarks.gate [--rounds 3] [--events 500] [--only sqlite,postgresql] [--json FILE]

One thread, one consumer. Events are admitted in one transaction a batch and completed in another,
as a worker does it: in batches of 1, where the commit is most of it, and of 32. Against the same
consumer without a ceiling, which has only the record that no event is taken twice.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

from sqlalchemy import Connection

from benchmarks.comparison import Comparison, interleaved, save, show
from benchmarks.processes import end_on_sigterm
from gunicorn_admission.webhooks.gates import Ceiling, GatePolicy, Kind, Ledger, configure
from gunicorn_admission.webhooks.store import Store
from tests.postgres import PostgreSQL, programs

__all__ = ["measure"]

ENGINES = ("sqlite", "postgresql")
BATCHES = (1, 32)
MOST = 10**9
NONE = "none"
#: By the name of the consumer.
POLICIES = {
    "one ceiling a day": GatePolicy([Ceiling(MOST, "requests", zone="America/New_York")]),
    "day and month": GatePolicy(
        [Ceiling(MOST, "requests"), Ceiling(MOST, "requests", per="month")]
    ),
    "rolling hour": GatePolicy([Ceiling(MOST, "requests", per="1h")]),
    "full: refused": GatePolicy([Ceiling(0, "requests")]),
}
LEASE = 30_000_000


def measure(rounds: int, events: int, engines: Sequence[str] = ENGINES) -> list[Comparison]:
    """Measure microseconds an event, gates in turn, on a fresh database each engine."""
    found = []
    for engine in engines:
        with database(engine) as store:
            if store is None:
                print("Note: no PostgreSQL here; left out.", file=sys.stderr)
                continue
            for batch in BATCHES:
                spend = spender(store, batch, events)
                contenders = {name: partial(spend, name) for name in (NONE, *POLICIES)}
                figures = interleaved(contenders, rounds)
                found += [
                    Comparison(
                        what=f"{name}, {batch} a transaction, {engine}",
                        unit="us an event",
                        ours=figures[name],
                        peer="no ceiling",
                        theirs=figures[NONE],
                    )
                    for name in POLICIES
                ]
    return found


def spender(store: Store, batch: int, events: int) -> Callable[[str], float]:
    """Return what works off so many events of a consumer, and says how long each took."""
    ledger, numbers = Ledger(), count()

    def spend(consumer: str) -> float:
        ids = [f"evt-{batch}-{next(numbers)}" for _ in range(events)]
        begun = time.perf_counter()
        for first in range(0, events, batch):
            work_off(store, ledger, consumer, ids[first : first + batch])
        return (time.perf_counter() - begun) / events * 1e6

    for consumer in (NONE, *POLICIES):
        work_off(store, ledger, consumer, ["first"])  # statements are compiled once
    return spend


def work_off(store: Store, ledger: Ledger, consumer: str, ids: Sequence[str]) -> None:
    now = store.now()

    def admit(connection: Connection) -> list[str]:
        admitted = []
        for event_id in ids:
            decision = ledger.admit(
                connection, consumer=consumer, source="bench", event_id=event_id, lease=event_id,
                lease_until=now + LEASE, now=now,
            )  # fmt: skip
            if decision.kind is Kind.ADMITTED:
                admitted.append(event_id)
        return admitted

    def complete(connection: Connection) -> None:
        for event_id in admitted:
            ledger.complete(
                connection, consumer=consumer, source="bench", event_id=event_id, lease=event_id,
                now=now,
            )  # fmt: skip

    admitted = store.write(admit)
    if admitted:
        store.write(complete)


@contextmanager
def database(engine: str) -> Iterator[Store | None]:
    """A fresh one with the gates in it; ``None`` where the engine is not here."""
    with ExitStack() as stack:
        url = f"sqlite:///{stack.enter_context(tempfile.TemporaryDirectory())}/webhooks.db"
        if engine == "postgresql":
            found = programs()
            if found is None:
                yield None
                return
            server = stack.enter_context(PostgreSQL(found, {}))
            url = server.url(server.create())
        store = stack.enter_context(Store(url))
        store.upgrade()
        for name, policy in POLICIES.items():
            store.write(
                lambda connection, name=name, policy=policy: configure(
                    connection, name, policy, now=store.now()
                )
            )
        yield store


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--events", type=int, default=500, help="of each measurement")
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
