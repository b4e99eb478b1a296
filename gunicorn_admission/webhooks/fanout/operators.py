"""What may stand in a list of a filter: a plain value, or an object with one operator."""

from __future__ import annotations

import math
import operator as compare
import re
from collections.abc import Callable, Mapping
from typing import Final

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.webhooks.providers.payload import Json

__all__ = ["COMPARISONS", "OPERATORS", "Test", "read_test"]

#: Whether a value passes; the value is ``None`` where the event has none, which the flag says.
Test = Callable[[Json, bool], bool]


def read_test(item: Json, at: str) -> Test:
    """
    Return the test for one item of a list.

    Raises:
        ConfigError: It is no plain value and no known operator, or the operand does not fit.
    """
    if not isinstance(item, Mapping):
        return _literal(item, at)
    if len(item) != 1:
        raise ConfigError(
            at, item, "an object with one operator",
            "write one object for each; one that passes is enough",
        )  # fmt: skip
    ((name, operand),) = item.items()
    build = OPERATORS.get(name)
    if build is None:
        raise ConfigError(
            at, item, f"an operator: {', '.join(OPERATORS)}", did_you_mean(str(name), OPERATORS)
        )
    return build(operand, f"{at}.{name}")


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _equal(left: Json, right: Json) -> bool:
    # To Python True is 1 and 1 is 1.0; to JSON only the second holds.
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _literal(item: Json, at: str) -> Test:
    if item is not None and not isinstance(item, (str, int, float)):
        raise ConfigError(
            at, item, "text, a number, true, false, null or an operator",
            "lists do not nest; write an object for what is inside an object",
        )  # fmt: skip
    return lambda value, there: there and _equal(value, item)


def _text(operand: Json, at: str) -> str:
    if not isinstance(operand, str) or not operand:
        raise ConfigError(at, operand, "text that is not empty", "put it into quotes")
    return operand


def _prefix(operand: Json, at: str) -> Test:
    text = _text(operand, at)
    return lambda value, there: isinstance(value, str) and value.startswith(text)


def _suffix(operand: Json, at: str) -> Test:
    text = _text(operand, at)
    return lambda value, there: isinstance(value, str) and value.endswith(text)


def _ignore_case(operand: Json, at: str) -> Test:
    text = _text(operand, at).casefold()
    return lambda value, there: isinstance(value, str) and value.casefold() == text


def _wildcard(operand: Json, at: str) -> Test:
    parts = _text(operand, at).split("*")
    # Each star gives back nothing that a later one could use: linear, however hostile the value.
    pattern = re.compile("".join([re.escape(parts[0]), *_stars(parts[1:])]), re.DOTALL)
    return lambda value, there: isinstance(value, str) and bool(pattern.fullmatch(value))


def _stars(parts: list[str]) -> list[str]:
    return [f"(?>.*?{re.escape(part)})" for part in parts[:-1]] + [
        f".*{re.escape(part)}" for part in parts[-1:]
    ]


def _anything_but(operand: Json, at: str) -> Test:
    items = operand if isinstance(operand, list) else [operand]
    if not items:
        raise ConfigError(at, operand, "a value, a list or an operator", "name what is not wanted")
    tests = [read_test(item, f"{at}[{n}]") for n, item in enumerate(items)]
    return lambda value, there: there and not any(test(value, True) for test in tests)


def _exists(operand: Json, at: str) -> Test:
    if not isinstance(operand, bool):
        raise ConfigError(at, operand, "true or false", "write it without quotes")
    return lambda value, there: there is operand


#: Comparisons of ``numeric``.
COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "=": compare.eq, "<": compare.lt, "<=": compare.le, ">": compare.gt, ">=": compare.ge,
}  # fmt: skip


def _numeric(operand: Json, at: str) -> Test:
    items = operand if isinstance(operand, list) else []
    pairs = list(zip(items[::2], items[1::2], strict=False))
    if not pairs or len(items) % 2:
        raise ConfigError(at, operand, "comparisons and numbers by turns", 'write [">", 0, "<", 5]')
    for sign, number in pairs:
        if sign not in COMPARISONS:
            raise ConfigError(at, sign, f"one of {' '.join(COMPARISONS)}", 'write [">", 0]')
        if not _is_number(number) or not math.isfinite(number):
            raise ConfigError(at, number, "a number", "write it without quotes")
    return lambda value, there: (
        _is_number(value)
        and all(
            COMPARISONS[sign](value, number)  # type: ignore[arg-type]
            for sign, number in pairs
        )
    )


#: Operators by name, each with what makes a test from its operand.
OPERATORS: Final[Mapping[str, Callable[[Json, str], Test]]] = {
    "prefix": _prefix,
    "suffix": _suffix,
    "equals-ignore-case": _ignore_case,
    "wildcard": _wildcard,
    "anything-but": _anything_but,
    "numeric": _numeric,
    "exists": _exists,
}
