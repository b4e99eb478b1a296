"""The model against the real server: what ``docs/reference/overload.md`` says was measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.simulating import run, shorter

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "overload.md"
_NAMES = {"gunicorn alone": "none", "**gunicorn-admission**": "adaptive"}
_COULD = {"A": None, "AB": None, "BFG": 400.0, "C": 400.0, "D": 40.0, "H": 400.0}
#: Goodput and shares of one run differ by 0.01 to 0.02 from the next, and the machine was a
#: shared one; the model has no noise of that kind, so it is a little better.
_TOLERANCE = 0.06


def measured(letter: str, name: str) -> dict[str, float | None]:
    table = re.split(r"\n\*\*(\w+)\*\*: ", _PAGE.read_text("utf-8"))
    lines = table[table.index(letter) + 1].splitlines()
    cells = next(line for line in lines if line.startswith(f"| {name} |")).split("|")[2:-1]
    columns = ("goodput", "high", "default", "low", "answered", "p99")
    numbers = (None if "-" in cell else float(cell) for cell in cells)
    return dict(zip(columns, numbers, strict=False))


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("letter", _COULD)
def test_goodput_and_shares_are_those_that_were_measured(letter: str, name: str) -> None:
    real = measured(letter, name)
    model = run(shorter(f"overload-{letter}"), _NAMES[name], 41, 42)
    could = _COULD[letter]
    found = {"goodput": model.goodput / could if could else model.success, **model.priorities}
    for column, value in found.items():
        expected = real[column]
        assert expected is not None
        assert value == pytest.approx(expected, abs=_TOLERANCE), column
