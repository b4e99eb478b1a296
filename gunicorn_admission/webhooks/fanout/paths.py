"""Paths such as ``body.data.customer``: the ordering key of an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.webhooks.fanout.fields import FIELDS, Fields
from gunicorn_admission.webhooks.providers.payload import Json

__all__ = ["Path"]

#: Characters of a key that are kept; a longer one is cut, which only orders more than asked for.
_LONGEST: Final = 255


class Path:
    """
    Where a value lies in an event.

    Args:
        text: Names joined by dots; the first is ``body``, ``headers``, ``source`` or ``type``, a
            number picks an element of an array. A leading ``$.`` is accepted.

    Raises:
        ConfigError: It does not begin with a known name, or a name is empty.

    Thread safety: immutable.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        first, *rest = text.removeprefix("$.").split(".")
        if first not in FIELDS:
            raise ConfigError(
                "order_by", text, "a path such as body.customer.id",
                f"{did_you_mean(first, FIELDS)} What is inside the event begins with body",
            )  # fmt: skip
        if not all(rest):
            raise ConfigError("order_by", text, "names joined by single dots", "remove a dot")
        if first == "headers":
            rest = [name.lower() for name in rest]
        self._names = (first, *rest)

    def find(self, fields: Fields) -> str | None:
        """Return the value as text; ``None`` where there is none, or no plain one."""
        value: Json = fields
        for name in self._names:
            if isinstance(value, list) and name.isdecimal():
                value = dict(enumerate(value)).get(int(name))
            elif isinstance(value, Mapping):
                value = value.get(name)
            else:
                return None
        if isinstance(value, list) and len(value) == 1:
            value = value[0]  # headers and forms have arrays
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            return None
        return str(value)[:_LONGEST]
