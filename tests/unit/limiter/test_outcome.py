"""What an exception says about capacity."""

from __future__ import annotations

import pytest

from gunicorn_admission.core.types import Outcome
from gunicorn_admission.limiter.outcome import DROP_EXCEPTIONS, outcome_of


def named(name: str, *bases: type[BaseException]) -> BaseException:
    """An exception whose class has that full name, as a driver's would."""
    module, _, qualname = name.rpartition(".")
    return type(qualname, bases or (Exception,), {"__module__": module})()


def test_nothing_raised_is_a_success() -> None:
    assert outcome_of(None) is Outcome.SUCCESS


@pytest.mark.parametrize("name", sorted(DROP_EXCEPTIONS - {"builtins.TimeoutError"}))
def test_a_driver_that_ran_dry_is_a_drop(name: str) -> None:
    assert outcome_of(named(name)) is Outcome.DROP


def test_a_timeout_is_a_drop() -> None:
    assert outcome_of(TimeoutError()) is Outcome.DROP


def test_a_subclass_counts_too() -> None:
    base = type(named("sqlalchemy.exc.TimeoutError"))
    assert outcome_of(named("app.errors.Busy", base)) is Outcome.DROP


@pytest.mark.parametrize(
    "error", [ValueError(), KeyError(1), KeyboardInterrupt(), SystemExit(), GeneratorExit()]
)
def test_a_bug_says_nothing(error: BaseException) -> None:
    assert outcome_of(error) is Outcome.IGNORE


def test_the_same_name_elsewhere_is_another_class() -> None:
    assert outcome_of(named("app.PoolTimeout")) is Outcome.IGNORE


def test_an_application_may_name_its_own() -> None:
    assert outcome_of(ValueError(), {"builtins.ValueError"}) is Outcome.DROP
