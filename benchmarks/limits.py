"""
Every built-in scenario under every limit, in virtual time: who serves how much.

    python -m benchmarks.limits [--seeds 5] [--only yardstick,overload] [--jobs 2] [--json FILE]
    python -m benchmarks.limits --from FILE      # the table of such a run once more

Prints the goodput of the adaptive limit, and ratios: against the oracle (the fixed limit of
somebody who knows everything) and against the best of the other limits. ``!`` marks what
is short of 0.97 of the oracle in the yardstick, or of 0.95 of the best other elsewhere.
The whole library takes about ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attrs import asdict, frozen

from gunicorn_admission.cli.seeds import parse_seeds
from gunicorn_admission.sim.compare import compare
from gunicorn_admission.sim.library import every
from gunicorn_admission.sim.scenario import Scenario

__all__ = ["OTHERS", "Row", "main", "table"]

#: What ``limit`` may be set to instead, and no limit but the number of threads.
OTHERS = ("gradient2", "vegas", "aimd", "pool")
_LIMITS = ("adaptive", *OTHERS, "oracle")
_OF_ORACLE, _OF_OTHERS = 0.97, 0.95


@frozen(kw_only=True)
class Row:
    """
    One scenario.

    Attributes:
        scenario: Its name.
        seeds: Under which it ran.
        goodput: Requests served in time a second, by limit; the mean over the seeds.
        spread: Standard deviation of adaptive's over the seeds.
    """

    scenario: str
    seeds: Sequence[int]
    goodput: Mapping[str, float]
    spread: float

    @property
    def best(self) -> str:
        """The best of the other limits."""
        return max(OTHERS, key=self.goodput.__getitem__)

    def ratio(self, one: str, other: str) -> float:
        """Goodput of one limit over that of another; 1.0 where neither serves anything."""
        divisor = self.goodput[other]
        return self.goodput[one] / divisor if divisor else 1.0

    @property
    def short(self) -> bool:
        """Whether adaptive misses what it is meant to reach."""
        yardstick = self.scenario.startswith("yardstick")
        return self.ratio("adaptive", self.best) < _OF_OTHERS or (
            yardstick and self.ratio("adaptive", "oracle") < _OF_ORACLE
        )


def measure(scenario: Scenario, seeds: Sequence[int], jobs: int) -> Row:
    """Run a scenario under all limits and seeds."""
    rows = compare(scenario, _LIMITS, seeds, processes=jobs).rows
    goodput = {row.limit: round(row.goodput, 3) for row in rows}
    spread = round(rows[0].spread, 3)
    return Row(scenario=scenario.name, seeds=seeds, goodput=goodput, spread=spread)


def table(rows: Iterable[Row]) -> str:
    """Markdown that also reads well in a terminal."""
    titles = ("scenario", "adaptive/s", "of the oracle", "of the best other", *OTHERS)
    cells = [titles, tuple("-" * len(title) for title in titles)]
    for row in rows:
        mark = " !" if row.short else ""
        cells.append(
            (
                f"`{row.scenario}`{mark}",
                f"{row.goodput['adaptive']:.1f} ±{row.spread:.1f}",
                f"{row.ratio('adaptive', 'oracle'):.3f}",
                f"{row.ratio('adaptive', row.best):.3f} {row.best}",
                *(f"{row.ratio(other, 'oracle'):.3f}" for other in OTHERS),
            )
        )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |\n"
        for line in cells
    )


def main() -> None:
    """Run what was asked for; one line on stderr for each scenario that is done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--seeds", default="5", help="how many, or which: 4,8,15")
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--from", type=Path, metavar="FILE", dest="source", help="read them there")
    given = parser.parse_args()
    if given.source is not None:
        rows = [Row(**row) for row in json.loads(given.source.read_text())]
    else:
        parts = given.only.lower().split(",")
        chosen = [one for one in every() if any(part in one.name.lower() for part in parts)]
        rows = []
        for scenario in chosen:
            rows.append(measure(scenario, parse_seeds(given.seeds), given.jobs))
            print(scenario.name, file=sys.stderr, flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    print(table(rows), end="")


if __name__ == "__main__":
    main()
