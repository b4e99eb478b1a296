"""
Markdown tables of what ``run`` wrote: medians, and the extremes where they differ.

    python -m benchmarks.overload.table [FILE ...]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.comparison import spread
from benchmarks.overload.contenders import CONTENDERS
from benchmarks.overload.figures import OUT, Figures, load
from benchmarks.overload.scenarios import scenarios

__all__ = ["line", "summary"]


class Column(NamedTuple):
    """A figure, its heading and how many decimal places tell something."""

    name: str
    title: str
    places: int


STEADY = (
    Column("goodput", "served", 4),
    Column("high", "high", 3),
    Column("default", "default", 3),
    Column("low", "low", 3),
    Column("p50", "p50 ms", 1),
    Column("p99", "p99 ms", 1),
    Column("cpu_ms", "CPU ms", 2),
    Column("memory_mb", "MB", 0),
)
OVERLOAD = (
    Column("goodput", "goodput", 3),
    Column("high", "high", 3),
    Column("default", "default", 2),
    Column("low", "low", 2),
    Column("answered", "answered", 3),
    Column("p99", "p99 ms", 0),
    Column("high_p99", "high p99 ms", 0),
    Column("refused_p50", "refusal p50 ms", 1),
    Column("refused_p99", "refusal p99 ms", 1),
    Column("gave_up", "gave up", 0),
    Column("broken", "broken", 0),
    Column("health", "health", 2),
    Column("wasted", "wasted", 3),
    Column("running", "running at end", 0),
    Column("served_after", "served after", 3),
    Column("recovery", "recovery s", 1),
    Column("cpu_ms", "CPU ms", 2),
)
_LINE = (
    "goodput", "high", "answered", "p99", "refused_p99", "health", "wasted", "recovery", "cpu_ms",
    "late_p99",
)  # fmt: skip


def line(figures: Figures) -> str:
    """One run in one line, for those who watch."""
    parts = [f"{figures.scenario:4} {figures.contender:16}"]
    for name in _LINE:
        value = getattr(figures, name)
        parts.append(f"{name} {'-' if value is None else format(value, '.3g')}")
    return "  ".join(parts)


def summary(taken: Sequence[Figures]) -> None:
    """Print a table for each scenario and kind of connection that was run."""
    titles = {key: scenario.title for key, scenario in scenarios("quick").items()}
    groups = {(one.scenario, one.connections, one.profile) for one in taken}
    for key, connections, profile in sorted(groups):
        rows = [one for one in taken if (one.scenario, one.connections) == (key, connections)]
        rows = [one for one in rows if one.profile == profile]
        columns = STEADY if key in ("A", "AB") else OVERLOAD
        print(f"### {key}: {titles[key]} ({connections} connections, {profile})\n")
        print("| contender | runs | " + " | ".join(column.title for column in columns) + " |")
        print("|---|" + "---|" * (len(columns) + 1))
        for name in CONTENDERS:
            mine = [one for one in rows if one.contender == name]
            if mine:
                cells = (_cell(mine, column) for column in columns)
                print(f"| {name} | {len(mine)} | " + " | ".join(cells) + " |")
        print()
    if taken:
        late = spread([one.late_p99 for one in taken])
        print(f"The generator was late by {late} ms (p99 of each run).", flush=True)


def _cell(rows: Sequence[Figures], column: Column) -> str:
    values = [getattr(row, column.name) for row in rows]
    known = [value for value in values if value is not None]
    text = spread(known, lambda value: f"{value:.{column.places}f}")
    absent = len(values) - len(known)
    return text if not absent or not known else f"{text} ({absent} without)"


def main() -> None:
    summary(load([Path(name) for name in sys.argv[1:]] or [OUT]))


if __name__ == "__main__":
    main()
