"""
Events stored, with their three deliveries: how many a second, and what one commit takes.

    python -m benchmarks.store [--rounds 3] [--seconds 3] [--only sqlite,postgresql]
                                      [--loads 1+0,2+0,1+3,2+3] [--json FILE]

By 8 threads in one process and in two, alone and while three consumers claim and complete what was
stored. Against SQLite as one would write it by hand: a connection for each thread, one transaction
an event, and against a single thread that does nothing else (the bare insert). All of them flush
each commit to the disk that holds the temporary folder.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.comparison import Comparison, save, show
from benchmarks.processes import ROOT, end_on_sigterm
from benchmarks.store_load import CONSUMERS
from gunicorn_admission.webhooks.fanout.subscriptions import Subscriptions
from gunicorn_admission.webhooks.store import Store
from tests.postgres import PostgreSQL, programs

__all__ = ["measure"]

THREADS = 8
#: Processes that store, and consumers.
LOADS = ((1, 0), (2, 0), (1, 3), (2, 3))
ENGINES = ("sqlite", "postgresql")
BY_HAND = "by hand"


class Figures(NamedTuple):
    """Of one load: events a second, and milliseconds of a commit."""

    per_second: float
    p50: float
    p99: float
    p999: float
    worst: float


class Load(NamedTuple):
    """Who stores, in how many processes and threads, beside how many consumers."""

    contender: str
    processes: int
    consumers: int
    threads: int = THREADS


BARE = Load(BY_HAND, 1, 0, threads=1)
Results = dict[Load, list[Figures]]


def measure(
    rounds: int,
    seconds: float,
    engines: Sequence[str] = ENGINES,
    wanted: Sequence[tuple[int, int]] = LOADS,
) -> list[Comparison]:
    """Run all loads in each round, each on a fresh database."""
    loads = [BARE]
    with ExitStack() as stack:
        server = None
        if "postgresql" in engines:
            found = programs()
            if found is None:
                print("Note: no PostgreSQL here; left out.", file=sys.stderr)
                engines = [name for name in engines if name != "postgresql"]
            else:
                server = stack.enter_context(PostgreSQL(found, {}))
        contenders = [BY_HAND, *engines]
        loads += [Load(name, *load) for load in wanted for name in contenders]
        results: Results = defaultdict(list)
        for turn in range(rounds):
            first = turn % len(loads)
            for load in loads[first:] + loads[:first]:
                with database(load.contender, server) as url:
                    results[load].append(run(load, url, seconds))
    return list(_compare(results, engines, wanted))


@contextmanager
def database(contender: str, server: PostgreSQL | None) -> Iterator[str]:
    """A fresh one, with a subscription for each consumer."""
    with tempfile.TemporaryDirectory() as folder:
        if contender == "postgresql":
            assert server is not None
            name = server.create()
            url = server.url(name)
        else:
            url = f"sqlite:///{folder}/webhooks.db"
        with Store(url) as store:
            store.upgrade()
            for consumer in CONSUMERS:
                Subscriptions(store).create(consumer)
        yield url
        if server is not None and contender == "postgresql":
            server.drop(name)


def run(load: Load, url: str, seconds: float) -> Figures:
    """Let all begin at once, and put together what they took."""
    by_hand = load.contender == BY_HAND
    kind = "consume-by-hand" if by_hand else "consume"
    with ExitStack() as stack:
        consumers = [
            stack.enter_context(process(f"{kind}:{name}", url, 1, 0))
            for name in CONSUMERS[: load.consumers]
        ]
        role = "by-hand" if by_hand else "store"
        producers = [
            stack.enter_context(process(role, url, load.threads, seconds))
            for _ in range(load.processes)
        ]
        for one in consumers + producers:
            if one.stdout.readline() != "ready\n":  # type: ignore[union-attr]
                raise RuntimeError(f"{one.args!r} did not start")
        for one in consumers + producers:
            one.stdin.write("\n")  # type: ignore[union-attr]
            one.stdin.flush()  # type: ignore[union-attr]
        taken: list[int] = []
        for one in producers:
            taken += json.loads(one.stdout.readline())  # type: ignore[union-attr]
    return figures(taken, seconds)


@contextmanager
def process(role: str, url: str, threads: int, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """One of ``store_load``; it ends when its standard input is closed."""
    command = [sys.executable, "-m", "benchmarks.store_load"]
    command += [role, url, str(threads), str(seconds)]
    pipe = subprocess.PIPE
    started = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
    with started:
        try:
            yield started
            started.stdin.close()  # type: ignore[union-attr]
            started.wait(30)
        finally:
            started.kill()


def figures(taken: list[int], seconds: float) -> Figures:
    """Figures of commits that took so many microseconds."""
    taken = sorted(taken)
    p50, p99, p999 = (taken[int(len(taken) * share)] / 1e3 for share in (0.5, 0.99, 0.999))
    return Figures(len(taken) / seconds, p50, p99, p999, taken[-1] / 1e3)


def _compare(
    results: Results, engines: Sequence[str], loads: Sequence[tuple[int, int]]
) -> Iterator[Comparison]:
    def column(load: Load, name: str) -> list[float]:
        return [getattr(one, name) for one in results[load]]

    for load in loads:
        hand = Load(BY_HAND, *load)
        for engine in engines:
            mine = Load(engine, *load)
            what = f"{engine}, {load[0]} x {THREADS} threads, {load[1]} consumers"
            yield Comparison(
                what=what,
                unit="events/s",
                ours=column(mine, "per_second"),
                peer="bare insert, 1 thread",
                theirs=column(BARE, "per_second"),
            )
            for name, unit in (
                ("p50", "ms p50"),
                ("p99", "ms p99"),
                ("p999", "ms p99.9"),
                ("worst", "ms max"),
            ):
                yield Comparison(
                    what=what,
                    unit=unit,
                    ours=column(mine, name),
                    peer="SQLite by hand, as many threads",
                    theirs=column(hand, name),
                )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each load")
    parser.add_argument("--only", default=",".join(ENGINES), help="engines")
    parser.add_argument(
        "--loads",
        default=",".join(f"{processes}+{consumers}" for processes, consumers in LOADS),
        help="processes that store + consumers",
    )
    parser.add_argument("--json", type=Path, help="write all rounds there")
    options = parser.parse_args()
    unknown = set(options.only.split(",")) - set(ENGINES)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: the engines are {' and '.join(ENGINES)}")
    loads = [tuple(map(int, load.split("+"))) for load in options.loads.split(",")]
    end_on_sigterm()
    comparisons = measure(options.rounds, options.seconds, options.only.split(","), loads)
    show(comparisons)
    save(comparisons, options.json)


if __name__ == "__main__":
    main()
