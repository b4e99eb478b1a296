"""What holds for one consumer: its ceilings, how events are charged, and what a full one means."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from attrs import frozen

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import format_duration
from gunicorn_admission.webhooks.gates.ceiling import Ceiling
from gunicorn_admission.webhooks.gates.units import check_amount, check_cost

__all__ = ["AtCeiling", "Charge", "GatePolicy", "check_retention"]


class AtCeiling(enum.Enum):
    """The answer to an event that no longer fits."""

    REFUSE = "refuse"  # not now and not later, until an operator releases it
    DEFER = "defer"  # again when the window resets
    REVIEW = "review"  # an operator approves or rejects it


class Charge(enum.Enum):
    """What is charged to the ceilings."""

    EVENT = "event"  # the cost, once, however many attempts it takes; nothing if none succeeds
    ATTEMPT = "attempt"  # the cost of each attempt, also of those that fail
    ACTUAL = "actual"  # what the handler says it was; the cost is the estimate that is reserved


E = TypeVar("E", bound=enum.Enum)


def _member(kind: type[E], value: E | str, field: str) -> E:
    try:
        return kind(value)
    except ValueError:
        names = [str(member.value) for member in kind]
        raise ConfigError(
            field, value, f"one of {', '.join(names)}", f"{names[0]} is the default"
        ) from None


@frozen(init=False)
class GatePolicy:
    """
    The gate of one consumer.

    Args:
        ceilings: All of them must have room, or nothing is reserved.
        cost: Of an event that names none: ``{unit: amount}``, or a number where all ceilings
            count one unit. ``requests`` cost 1 where nothing is said.
        charge: ``"event"``, ``"attempt"`` or ``"actual"``; see :class:`Charge`.
        at_ceiling: ``"refuse"``, ``"defer"`` or ``"review"``; see :class:`AtCeiling`.

    Raises:
        ConfigError: A value cannot work, a unit has no cost, two ceilings are the same, or
            work is to be deferred to the end of something that has no end.

    Thread safety: immutable.
    """

    ceilings: tuple[Ceiling, ...]
    cost: Mapping[str, int]
    charge: Charge
    at_ceiling: AtCeiling

    def __init__(
        self,
        ceilings: Iterable[Ceiling],
        *,
        cost: int | Mapping[str, int] | None = None,
        charge: Charge | str = Charge.EVENT,
        at_ceiling: AtCeiling | str = AtCeiling.REFUSE,
    ) -> None:
        bounds = tuple(ceilings)
        for bound in bounds:
            if not isinstance(bound, Ceiling):
                raise ConfigError(
                    "ceilings", bound, "ceilings", 'write Ceiling(500, "requests", per="day")'
                )
        keys = [(bound.unit, str(bound.span)) for bound in bounds]
        for key, bound in zip(keys, bounds, strict=True):
            if keys.count(key) > 1:
                raise ConfigError(
                    "ceilings", str(bound), f"one ceiling of {key[0]} per {key[1]}",
                    "give hard and soft in one",
                )  # fmt: skip
        answer = _member(AtCeiling, at_ceiling, "at_ceiling")
        if answer is AtCeiling.DEFER:
            _check_ends(bounds)
        # In one order everywhere, so that the same policy is equal to itself.
        ordered = tuple(bound for _, bound in sorted(zip(keys, bounds, strict=True)))
        self.__attrs_init__(
            ordered, _costs(cost, bounds), _member(Charge, charge, "charge"), answer
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "ceilings": [ceiling.as_dict() for ceiling in self.ceilings],
            "cost": dict(self.cost),
            "charge": self.charge.value,
            "at_ceiling": self.at_ceiling.value,
        }


def _costs(cost: int | Mapping[str, int] | None, ceilings: tuple[Ceiling, ...]) -> dict[str, int]:
    units = {ceiling.unit for ceiling in ceilings}
    if isinstance(cost, Mapping):
        costs = check_cost(cost)
    elif cost is None:
        costs = {}
    elif len(units) > 1:
        raise ConfigError(
            "cost", cost, f"a mapping of the units {', '.join(sorted(units))}",
            "a bare number is for ceilings that all count one unit",
        )  # fmt: skip
    else:
        costs = {unit: check_amount(cost, "cost") for unit in units or {"requests"}}
    return {"requests": 1, **costs}


def _check_ends(ceilings: tuple[Ceiling, ...]) -> None:
    for ceiling in ceilings:
        if ceiling.hard is not None and ceiling.span.longest_us is None:
            raise ConfigError(
                "at_ceiling", "defer", f"refuse or review with {ceiling}",
                "a total has no end to wait for",
            )  # fmt: skip


def check_retention(policy: GatePolicy, retention_us: int) -> None:
    """
    Refuse to promise later work where the event is thrown away before that.

    Args:
        retention_us: How long the subscription keeps an event, in microseconds.

    Raises:
        ConfigError: Work is deferred, and a window may last longer than the retention.
    """
    if policy.at_ceiling is not AtCeiling.DEFER:
        return
    for ceiling in policy.ceilings:
        longest = ceiling.span.longest_us
        if ceiling.hard is not None and longest is not None and longest > retention_us:
            kept = format_duration(retention_us / 1e6)
            needed = format_duration(longest / 1e6)
            raise ConfigError(
                "at_ceiling", "defer", f"refuse or review with {ceiling} and retention {kept}",
                f"a deferred event may have to wait {needed}: keep events at least that long, "
                "or choose a shorter window",
            )  # fmt: skip
