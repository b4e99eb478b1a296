"""From counts to figures."""

from __future__ import annotations

import json

import pytest

from gunicorn_admission.sim.figures import figures, mean, percentile
from gunicorn_admission.sim.run import simulate
from gunicorn_admission.sim.scenario import Class, Phase
from tests.simulating import scenario


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([], 0.5, None),
        ([3.0], 0.99, 3.0),
        ([4.0, 1.0, 3.0, 2.0], 0.5, 2.0),
        ([float(n) for n in range(1, 101)], 0.99, 99.0),
        ([1.0, 2.0], 0.0, 1.0),
    ],
)
def test_percentile(values: list[float], share: float, expected: float | None) -> None:
    assert percentile(values, share) == expected


def test_only_what_counts_is_counted() -> None:
    phases = (
        Phase(name="calm", seconds=5, rate=50),
        Phase(name="over", seconds=5, rate=500),
        Phase(name="after", seconds=5, rate=50),
    )
    chosen = scenario(phases=phases, measured=("over",), after="after")
    over = figures(simulate(chosen, "fixed:4", 1))
    assert over.offered == pytest.approx(500, rel=0.1)
    assert 150 < over.goodput < 205
    assert over.success_after == pytest.approx(1.0, abs=0.02)
    assert figures(simulate(scenario(), "fixed:4", 1)).success_after is None


def test_classes_and_priorities() -> None:
    classes = (
        Class(name="/a", rule="high"),
        Class(name="/b", rule="low"),
        Class(name="/c", rule="low"),
    )
    result = figures(simulate(scenario(rate=500, classes=classes), "fixed:4", 1))
    assert set(result.classes) == {"/a", "/b", "/c"}
    assert set(result.priorities) == {"high", "low"}
    assert result.priorities["high"] > result.priorities["low"]
    assert sum(result.reasons.values()) == pytest.approx(result.refused)


def test_mean_of_seeds() -> None:
    rows = [figures(simulate(scenario(rate=500), "fixed:4", seed)) for seed in (1, 2, 3)]
    merged = mean(rows)
    assert merged.seeds == 3
    assert merged.limit == "fixed:4"
    assert merged.goodput == pytest.approx(sum(row.goodput for row in rows) / 3)
    assert merged.spread > 0
    assert min(row.goodput for row in rows) <= merged.goodput <= max(row.goodput for row in rows)
    assert mean(rows[:1]).spread == 0.0


def test_they_fit_into_json() -> None:
    document = figures(simulate(scenario(), "adaptive", 1)).to_dict()
    assert json.loads(json.dumps(document)) == document
    assert {"limit", "goodput", "success", "p99", "reasons"} <= set(document)
