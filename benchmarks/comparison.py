"""Figures taken side by side, their ratios, and the table that shows them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

__all__ = ["Comparison", "command", "figure", "interleaved", "save", "show", "spread"]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """
    One thing measured in several rounds, with and without a peer.

    Attributes:
        what: What was measured.
        unit: Of both sides.
        ours, theirs: One figure a round, in the order of the rounds.
        peer: What it is compared with; empty when only our figure is meant.
    """

    what: str
    unit: str
    ours: Sequence[float]
    peer: str = ""
    theirs: Sequence[float] = ()

    @property
    def ratios(self) -> list[float]:
        """Ours over theirs within each round, where neighbours in time share the noise."""
        pairs = zip(self.ours, self.theirs, strict=False)
        return [ours / theirs for ours, theirs in pairs if theirs]


def interleaved(
    contenders: Mapping[str, Callable[[], float]], rounds: int
) -> dict[str, list[float]]:
    """Measure all contenders in each round; who goes first changes from round to round."""
    names = list(contenders)
    figures: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            figures[name].append(contenders[name]())
    return figures


def figure(value: float) -> str:
    """Three digits that matter, without an exponent."""
    size = abs(value)
    places = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:.{places}f}"


def spread(values: Sequence[float], form: Callable[[float], str] = figure) -> str:
    """Median, and the extremes where they differ from it; ``-`` without values."""
    if not values:
        return "-"
    low, middle, high = form(min(values)), form(median(values)), form(max(values))
    return middle if low == high else f"{middle} [{low}..{high}]"


def show(comparisons: Iterable[Comparison]) -> None:
    """Print a Markdown table that also reads well in a terminal."""
    rows = [("measured", "ours", "against", "theirs", "ours / theirs"), ("",) * 5]
    for one in comparisons:
        ours, theirs = (
            f"{figure(median(side))} {one.unit}".rstrip() if side else "-"
            for side in (one.ours, one.theirs)
        )
        rows.append((one.what, ours, one.peer, theirs, spread(one.ratios)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        rule = ("-" * width for width in widths)
        print("| " + " | ".join(cells if any(row) else rule) + " |")
    print(flush=True)


def save(comparisons: Iterable[Comparison], path: Path | None) -> None:
    """Write all rounds as JSON; nothing without a path."""
    if path is not None:
        path.write_text(json.dumps([asdict(one) for one in comparisons], indent=1) + "\n")


def command(
    about: str | None,
    measure: Callable[[int, float], Iterable[Comparison]],
    *,
    rounds: int = 7,
    seconds: float = 0.2,
    of: str = "of each figure",
) -> None:
    """
    Run a benchmark from its command line: measure, show, and write where asked.

    Args:
        about: The module's docstring, as its help.
        measure: Given rounds and seconds.
        rounds, seconds: Unless the command line says otherwise.
        of: What the seconds are.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=seconds, help=of)
    parser.add_argument("--json", type=Path, help="write all rounds there")
    options = parser.parse_args()
    comparisons = list(measure(options.rounds, options.seconds))
    show(comparisons)
    save(comparisons, options.json)
