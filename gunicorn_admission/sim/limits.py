"""The limits that can be compared, by name, each as a worker would make it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from attrs import evolve

from gunicorn_admission.core.limits import AdaptiveLimit, FixedLimit
from gunicorn_admission.core.limits.base import Limit
from gunicorn_admission.core.policy import Policy
from gunicorn_admission.core.types import Mode
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.limiter.build import limit_factory
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.sim.scenario import Scenario

__all__ = ["DEFAULT", "NAMES", "Contender", "Maker", "contender", "names"]

#: Makes one limit for a worker's policy; the second argument is a source of jitter.
Maker = Callable[[Policy, Random], Limit]

_PUBLISHED = ("gradient2", "vegas", "aimd")
NAMES = ("adaptive", *_PUBLISHED, "fixed:N", "pool", "oracle", "none")
#: What is compared unless somebody says otherwise.
DEFAULT = ("adaptive", *_PUBLISHED, "oracle")


class Contender:
    """
    One entry of a comparison.

    Attributes:
        name: As it was asked for.
        make: Makes the limit.
        mode: ``OFF`` for plain threads without admission.
    """

    __slots__ = ("make", "mode", "name")

    def __init__(self, name: str, make: Maker, mode: Mode = Mode.ENFORCE) -> None:
        self.name = name
        self.make = make
        self.mode = mode

    def policy(self, policy: Policy) -> Policy:
        """The worker's policy under this contender."""
        return evolve(policy, mode=self.mode)


def names(text: str) -> tuple[str, ...]:
    """
    Split what a user wrote after ``--compare``.

    Raises:
        ConfigError: A name is unknown.
    """
    found = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))
    for name in found:
        _maker(name)
    if not found:
        raise ConfigError("compare", text, ", ".join(NAMES), "name at least one limit")
    return found


def contender(name: str, scenario: Scenario) -> Contender:
    """
    Return the contender of that name.

    ``adaptive``, ``gradient2``, ``vegas`` and ``aimd`` are those of the setting ``limit``.
    ``fixed:N`` holds N, ``pool`` all threads, ``oracle`` what the scenario says is best.
    ``none`` is a worker without admission.

    Raises:
        ConfigError: The name is unknown.
    """
    if name == "oracle":
        return Contender(name, _fixed(scenario.oracle))
    if name == "none":
        return Contender(name, _pool, Mode.OFF)
    return Contender(name, _maker(name))


def _maker(name: str) -> Maker:
    if name == "adaptive":
        return _adaptive
    if name in _PUBLISHED:
        return lambda policy, random: limit_factory(name, None, policy)()
    if name in ("pool", "oracle", "none"):
        return _pool
    kind, _, number = name.partition(":")
    if kind == "fixed" and number.isascii() and number.isdigit() and int(number) > 0:
        return _fixed(int(number))
    hint = "fixed needs a number, for example fixed:10" if kind == "fixed" else None
    raise ConfigError("compare", name, ", ".join(NAMES), hint or did_you_mean(name, NAMES))


def _adaptive(policy: Policy, random: Random) -> Limit:
    return AdaptiveLimit(maximum=policy.max_limit, minimum=policy.min_limit, jitter=random.random)


def _pool(policy: Policy, random: Random) -> Limit:
    return FixedLimit(policy.max_limit)


def _fixed(limit: int) -> Maker:
    return lambda policy, random: FixedLimit(min(limit, policy.max_limit))
