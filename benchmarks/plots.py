"""
The pictures and the table of docs/explanation/limits-side-by-side.md, from the simulator.

    python -m benchmarks.plots [--seeds 911,912] [--only yardstick-A,...]

Takes some minutes on two cores. The seeds are not those with which anything was tuned.
``--only`` draws anew what it names, and leaves the other rows of the table as they are.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve

from gunicorn_admission.cli.seeds import parse_seeds
from gunicorn_admission.sim.compare import Comparison, compare
from gunicorn_admission.sim.library import every, find
from gunicorn_admission.sim.report import draw

__all__ = ["LIMITS", "PICTURES", "rows"]

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explanation" / "limits-side-by-side.md"
IMAGES = ROOT / "docs" / "images"
#: The last one is what the others are measured by.
LIMITS = ("adaptive", "gradient2", "vegas", "aimd", "pool", "oracle")
#: Scenarios that are drawn, and the limits in the picture.
PICTURES = ("yardstick-A", "yardstick-B", "yardstick-D", "retry-storm")
DRAWN = ("adaptive", "gradient2", "vegas", "pool")
_TABLE = re.compile(r"(?<=<!-- simulated -->\n).*?(?=<!-- end -->)", re.DOTALL)
_ROW = re.compile(r"^\| `([^`]+)`")


def row(comparison: Comparison) -> str:
    """One line: goodput in parts of the oracle's, and its spread where it matters."""
    *others, oracle = comparison.rows
    cells = [f"{one.goodput / oracle.goodput:.3f}" for one in others]
    scenario = comparison.scenario
    per_second = f"{oracle.goodput:.1f} ±{oracle.spread:.1f}"
    return f"| `{scenario.name}`: {scenario.title} | {' | '.join(cells)} | {per_second} |"


def rows(text: str) -> dict[str, str]:
    """The lines of the table in a page, by scenario."""
    found = _TABLE.search(text)
    lines = found[0].splitlines() if found else []
    return {match[1]: line for line in lines if (match := _ROW.match(line))}


def write(fresh: Mapping[str, str], seeds: tuple[int, ...]) -> None:
    """Put lines into the page, in the order of the library."""
    text = PAGE.read_text("utf-8")
    known = {**rows(text), **fresh}
    titles = ("scenario", *("all threads" if one == "pool" else one for one in LIMITS[:-1]))
    table = [
        f"Seeds {', '.join(map(str, seeds))}.",
        "",
        f"| {' | '.join(titles)} | oracle/s |",
        "|---" * (len(titles) + 1) + "|",
        *(known[one.name] for one in every() if one.name in known),
    ]
    PAGE.write_text(_TABLE.sub(lambda _: "\n" + "\n".join(table) + "\n\n", text), "utf-8")


def picture(comparison: Comparison) -> None:
    """Draw one scenario, without the limits that would make it too wide to read."""
    drawn = [LIMITS.index(name) for name in DRAWN]
    narrow = evolve(
        comparison,
        rows=tuple(comparison.rows[index] for index in drawn),
        runs=tuple(comparison.runs[index] for index in drawn),
    )
    draw(narrow, IMAGES / f"simulated-{comparison.scenario.name}.png")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="911,912", help="how many, or which")
    parser.add_argument("--only", help="scenarios, separated by commas")
    options = parser.parse_args()
    seeds = parse_seeds(options.seeds)
    chosen = every() if options.only is None else map(find, options.only.split(","))
    for scenario in chosen:
        print(scenario.name, file=sys.stderr, flush=True)
        comparison = compare(scenario, LIMITS, seeds, processes=os.cpu_count() or 1)
        if scenario.name in PICTURES:
            picture(comparison)
        write({scenario.name: row(comparison)}, seeds)


if __name__ == "__main__":
    main()
