"""Scenarios are checked when they are made."""

from __future__ import annotations

from typing import Any

import pytest

from gunicorn_admission.core.types import Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.sim.scenario import Class, Dependency, Fault, Phase
from tests.simulating import scenario

PHASE = Phase(name="load", seconds=5, rate=100)


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("dependency", {"dependencies": ()}),
        ("dependency", {"phases": (Phase(name="a", seconds=1, rate=1, faults={"x": Fault()}),)}),
        ("setting", {"settings": {"max_limt": 3}}),
        ("phase", {"measured": ("other",)}),
        ("phase", {"after": "other"}),
        ("class", {"phases": (Phase(name="a", seconds=1, rate=1, mix={"/x": 1}),)}),
    ],
)
def test_names_must_exist(field: str, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        scenario(**changes)
    assert caught.value.field == field


def test_a_setting_is_checked_as_that_of_a_user() -> None:
    with pytest.raises(ConfigError):
        scenario(settings={"max_limit": 0}).admission()


def test_sums() -> None:
    phases = (PHASE, Phase(name="more", seconds=2, rate=50))
    chosen = scenario(phases=phases)
    assert chosen.seconds == 7
    assert chosen.arrivals == 600
    assert chosen.counts == {"load", "more"}
    assert scenario(phases=phases, measured=("more",)).counts == {"more"}


def test_rules_become_priorities() -> None:
    classes = (
        Class(name="/pay", rule="high"),
        Class(name="/look", rule={"share": 0.25}),
        Class(name="/report", rule={"priority": "low", "cap": 2}),
    )
    chosen = scenario(classes=classes, dependencies=(Dependency(),))
    assert chosen.priorities() == (Priority.HIGH, Priority.DEFAULT, Priority.LOW)
    policies = {p.name: p for p in chosen.admission().derive(16, False).partitions}
    assert policies["/look"].share == 0.25
    assert policies["/report"].cap == 2


def test_one_class_may_hold_every_slot() -> None:
    assert scenario().admission().derive(16, False).policy.class_cap is None
