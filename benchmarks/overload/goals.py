"""
What the project wants to reach, and whether the runs in a file have reached it.

    python -m benchmarks.overload.goals [FILE ...]

All by one configuration that is told nothing but the priorities. Goals are set at or beyond
what a prototype reached, and beyond what the best peer does where that is known.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.comparison import spread
from benchmarks.overload.contenders import OURS, PLAIN
from benchmarks.overload.figures import OUT, Figures, load

__all__ = ["GOALS", "Goal", "check"]


class Goal(NamedTuple):
    """
    One bar.

    Attributes:
        scenarios: Letters, separated by spaces.
        figure: Of ``Figures``.
        sign: ``>=`` or ``<=``.
        bound: In the unit of the figure.
        beyond: ``""``, or how it relates to plain gunicorn in the same round: ``times`` it,
            ``more`` than it.
        contender: Whose.
    """

    scenarios: str
    figure: str
    sign: str
    bound: float
    beyond: str = ""
    contender: str = OURS

    def __str__(self) -> str:
        relation = {"": "", "times": f" times that of {PLAIN}", "more": f" more than {PLAIN}"}
        who = "" if self.contender == OURS else f" ({self.contender})"
        return f"{self.figure} {self.sign} {self.bound:g}{relation[self.beyond]}{who}"


GOALS = (
    Goal("A", "goodput", ">=", 0.9995),
    Goal("A", "cpu_ms", "<=", 1.03, "times"),
    Goal("A", "p99", "<=", 1.5, "more"),
    Goal("AB", "high", ">=", 0.99),
    Goal("AB", "default", ">=", 0.99),
    Goal("AB", "low", ">=", 0.99, contender="ours-patient"),
    Goal("AB", "p99", "<=", 450, contender="ours-patient"),
    Goal("BFG", "goodput", ">=", 0.95),
    Goal("BFG", "high", ">=", 0.995),
    Goal("BFG", "high_p99", "<=", 80),
    Goal("C", "goodput", ">=", 0.94),
    Goal("C", "high", ">=", 0.46),
    Goal("BFG C", "refused_p50", "<=", 2),
    Goal("BFG C", "refused_p99", "<=", 120),
    Goal("BFG C", "answered", ">=", 0.999),
    Goal("BFG", "wasted", "<=", 0.001),
    Goal("C E", "served_after", ">=", 0.99),
    Goal("D", "goodput", ">=", 0.98),
    Goal("D", "high", ">=", 0.60),
    Goal("D", "p99", "<=", 830),
    Goal("D", "refused_p99", "<=", 150),
    Goal("D", "served_after", ">=", 0.97),
    Goal("E", "health_p99", "<=", 50),
    Goal("E", "refused_p99", "<=", 20),
    Goal("E", "running", "<=", 32),
    Goal("BFG C E", "health", ">=", 1),
    Goal("BFG C E", "recovery", "<=", 0.5),
    Goal("H", "goodput", ">=", 0.97),
    Goal("H", "high", ">=", 0.99),
    Goal("H", "p99", "<=", 290),
    Goal("A AB BFG C D E H", "broken", "<=", 0),
    Goal("AB BFG C D E H", "retry_after", ">=", 1),
)


class Verdict(NamedTuple):
    """One goal in one scenario: a value a round, and whether their median meets it."""

    scenario: str
    goal: Goal
    values: list[float]

    @property
    def met(self) -> bool:
        """Whether it holds; meaningless without values."""
        middle = median(self.values)
        return middle >= self.goal.bound if self.goal.sign == ">=" else middle <= self.goal.bound


def check(taken: Sequence[Figures]) -> Iterator[Verdict]:
    """Hold all goals against runs; those of scenarios that were not run have no values."""
    for scenario in ("A", "AB", "BFG", "C", "D", "E", "H"):
        for goal in GOALS:
            if scenario in goal.scenarios.split():
                rows = [one for one in taken if one.scenario == scenario]
                yield Verdict(scenario, goal, list(_values(goal, rows)))


def _values(goal: Goal, rows: Sequence[Figures]) -> Iterator[float]:
    plain = {_beside(row): row for row in rows if row.contender == PLAIN}
    for row in rows:
        if row.contender != goal.contender:
            continue
        value = getattr(row, goal.figure)
        if value is None:
            if goal.figure == "recovery":
                yield math.inf  # it did not recover while it was watched
            continue
        if goal.beyond:
            base = getattr(plain.get(_beside(row)), goal.figure, None)
            if not base:
                continue
            value = value / base if goal.beyond == "times" else value - base
        yield value


def _beside(figures: Figures) -> tuple[object, ...]:
    return figures.round, figures.seed, figures.connections, figures.profile


def main() -> None:
    taken = load([Path(name) for name in sys.argv[1:]] or [OUT])
    for kind in sorted({(one.connections, one.profile) for one in taken}):
        rows = [one for one in taken if (one.connections, one.profile) == kind]
        print(f"### Goals ({kind[0]} connections, {kind[1]})\n")
        print("| scenario | goal | measured | runs | met |\n|---|---|---|---|---|")
        verdicts = [verdict for verdict in check(rows) if verdict.values]
        for verdict in verdicts:
            answer = "yes" if verdict.met else "**no**"
            cells = (verdict.scenario, verdict.goal, spread(verdict.values), len(verdict.values))
            print("| " + " | ".join(map(str, cells)) + f" | {answer} |")
        met = sum(verdict.met for verdict in verdicts)
        print(f"\n{met} of {len(verdicts)} goals met; those not measured are left out.\n")


if __name__ == "__main__":
    main()
