"""Every built-in scenario by its name."""

from __future__ import annotations

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.sim.library import fleet, hard, nodes, overload, yardstick
from gunicorn_admission.sim.scenario import Scenario

__all__ = ["every", "find"]

_MODULES = (yardstick, overload, hard, nodes, fleet)
_ALL: dict[str, Scenario] = {one.name: one for module in _MODULES for one in module.SCENARIOS}


def every() -> tuple[Scenario, ...]:
    """Return all of them, in the order of the library."""
    return tuple(_ALL.values())


def find(name: str) -> Scenario:
    """
    Return the scenario of that name; upper and lower case are the same.

    Raises:
        ConfigError: There is none.
    """
    wanted = name.strip().lower()
    for known, scenario in _ALL.items():
        if known.lower() == wanted:
            return scenario
    raise ConfigError("scenario", name, "the name of a built-in one", did_you_mean(name, _ALL))
