"""
The short comparison of everything, about 5 minutes: one table of ratios.

    python -m benchmarks.run [--only hot_path,growth,...] [--scale 1] [--json FILE]

Each part has a command of its own that measures longer and says more; see README.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import growth, gunicorn_overhead, hot_path, simulator, store
from benchmarks.comparison import Comparison, save, show
from benchmarks.overload.contenders import OURS, PLAIN
from benchmarks.overload.figures import Figures
from benchmarks.overload.run import runs
from benchmarks.processes import DidNotStart, end_on_sigterm

__all__ = ["PARTS", "main"]

#: Scenario, and the figures of it that tell most.
OVERLOAD = {
    "BFG": {
        "goodput": "of the capacity",
        "high": "of high priority served",
        "answered": "of all answered",
        "refused_p99": "ms refusal p99",
        "p99": "ms p99",
        "wasted": "of work for nobody",
    },
    "E": {"health": "of health checks answered", "served_after": "served afterwards"},
}


def _hot_path(scale: float) -> list[Comparison]:
    return hot_path.measure(rounds=5, seconds=0.1 * scale)


def _growth(scale: float) -> list[Comparison]:
    return growth.measure(rounds=5, seconds=0.1 * scale)


def _simulator(scale: float) -> list[Comparison]:
    return simulator.measure(rounds=5, seconds=10 * scale)


def _gunicorn(scale: float) -> list[Comparison]:
    return gunicorn_overhead.measure(rounds=5, seconds=scale, own=scale < 1)


def _store(scale: float) -> list[Comparison]:
    return store.measure(rounds=2, seconds=2 * scale, wanted=[(2, 3)])


def _overload(scale: float) -> list[Comparison]:
    taken = list(runs((PLAIN, OURS), tuple(OVERLOAD), scale=0.8 * scale))
    return list(_compare(taken))


def _compare(taken: list[Figures]) -> Iterator[Comparison]:
    for scenario, wanted in OVERLOAD.items():
        for name, unit in wanted.items():
            ours, theirs = (
                [
                    value
                    for one in taken
                    if (one.scenario, one.contender) == (scenario, contender)
                    # A refusal that never came has no latency.
                    and (value := getattr(one, name)) is not None
                ]
                for contender in (OURS, PLAIN)
            )
            yield Comparison(
                what=f"overload {scenario}", unit=unit, ours=ours, peer=PLAIN, theirs=theirs
            )


PARTS: dict[str, Callable[[float], list[Comparison]]] = {
    "hot_path": _hot_path,
    "growth": _growth,
    "simulator": _simulator,
    "gunicorn": _gunicorn,
    "store": _store,
    "overload": _overload,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    parser.add_argument("--scale", type=float, default=1.0, help="shorten all; smoke runs only")
    parser.add_argument("--json", type=Path, help="write all rounds there")
    options = parser.parse_args()
    unknown = set(options.only.split(",")) - PARTS.keys()
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: the parts are {', '.join(PARTS)}")
    end_on_sigterm()
    comparisons = []
    for name in options.only.split(","):
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        try:
            comparisons += PARTS[name](options.scale)
        except DidNotStart as error:
            sys.exit(str(error))
    show(comparisons)
    save(comparisons, options.json)
    busy = os.getloadavg()[0]
    print(
        f"Load average {busy:.1f} on {os.cpu_count()} cores; keep the machine free while it runs."
    )


if __name__ == "__main__":
    main()
