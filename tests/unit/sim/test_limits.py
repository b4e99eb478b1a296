"""The limits that can be compared, by name."""

from __future__ import annotations

from random import Random

import pytest

from gunicorn_admission.core.policy import Policy
from gunicorn_admission.core.types import Mode
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.sim.limits import DEFAULT, contender, names
from tests.simulating import scenario

POLICY = Policy(max_limit=16, min_limit=2)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("adaptive", None),
        ("gradient2", 16),
        ("vegas", 16),
        ("aimd", 16),
        ("fixed:5", 5),
        ("fixed:500", 16),
        ("pool", 16),
        ("oracle", 4),
        ("none", 16),
    ],
)
def test_known_names(name: str, first: int | None) -> None:
    assert names(name) == (name,)
    chosen = contender(name, scenario())
    limit = chosen.make(POLICY, Random(1))
    assert 2 <= limit.limit <= 16
    assert first is None or limit.limit == first
    assert chosen.policy(POLICY).mode is (Mode.OFF if name == "none" else Mode.ENFORCE)


@pytest.mark.parametrize("name", ["fixed", "fixed:", "fixed:0", "fixed:x", "fixed:-1", "fixd:3"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        names(f"adaptive,{name}")
    assert caught.value.value == name


def test_the_nearest_name_is_a_hint() -> None:
    with pytest.raises(ConfigError, match="did you mean 'gradient2'"):
        names("gradient")


def test_lists() -> None:
    assert names(" Adaptive, oracle ,adaptive") == ("adaptive", "oracle")
    assert names(",".join(DEFAULT)) == DEFAULT
    with pytest.raises(ConfigError):
        names(" , ")
