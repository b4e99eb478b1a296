"""Units and amounts: whole numbers only, since a ceiling that is rounded is not exact."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from gunicorn_admission.errors import ConfigError

__all__ = ["KNOWN", "MOST", "check_amount", "check_cost", "check_unit"]

#: Units with a meaning of their own; any other name is the user's.
KNOWN: Final = ("requests", "tokens", "bytes", "usd_micros")

#: So that sums of amounts stay within the 64 bits of a column.
MOST: Final = 10**15

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)


def check_unit(value: object, field: str = "unit") -> str:
    """
    Return the name of a unit.

    Raises:
        ConfigError: It is not a lower-case name of at most 32 letters, digits and ``_``.
    """
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise ConfigError(
        field, value, "a lower-case name of at most 32 letters, digits and _",
        f"usual ones are {', '.join(KNOWN)}",
    )  # fmt: skip


def check_amount(value: object, field: str) -> int:
    """
    Return an amount of a unit.

    Raises:
        ConfigError: It is not a whole number from 0 to :data:`MOST`. A float is refused even
            where it is whole: money that went through floats has been rounded somewhere.
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST:
        return value
    hint = "count in whole units; money in micro-units, 1 USD = 1_000_000 usd_micros"
    if isinstance(value, bool):
        hint = "a switch is not an amount"
    elif isinstance(value, int):
        hint = "amounts only grow" if value < 0 else "choose a larger unit"
    raise ConfigError(field, value, f"a whole number from 0 to {MOST:_}", hint)


def check_cost(cost: object, field: str = "cost") -> dict[str, int]:
    """
    Return a cost as ``{unit: amount}``.

    Raises:
        ConfigError: It is not a mapping of units to amounts.
    """
    if not isinstance(cost, Mapping):
        raise ConfigError(
            field, cost, "a mapping of units to whole numbers",
            'for example {"requests": 1, "tokens": 1200}',
        )  # fmt: skip
    return {
        check_unit(unit, field): check_amount(amount, f"{field}[{unit!r}]")
        for unit, amount in cost.items()
    }
