"""What filters and ordering keys can see of an event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import parse_qs

from gunicorn_admission.webhooks.providers.headers import HeaderSource
from gunicorn_admission.webhooks.providers.payload import Json, read_json

__all__ = ["FIELDS", "Fields"]

#: Names at the top of a pattern or a path.
FIELDS: Final = ("body", "headers", "source", "type")

_FORM: Final = "application/x-www-form-urlencoded"


class Fields(Mapping[str, Json]):
    """
    One event as a JSON object; headers and body are read when first asked for.

    Headers are an object of lower-case names with all values of each in an array. The body is
    its JSON value; of a form it is an object of names with an array of values each. A type that
    is not known, and a body that is neither or is ``null``, are absent.

    Thread safety: one thread at a time.
    """

    def __init__(self, *, source: str, type: str | None, headers: HeaderSource, body: bytes):
        self._raw = headers, body
        self._read: dict[str, Json] = {"source": source, "type": type}

    def __getitem__(self, name: str) -> Json:
        if name not in self._read:
            if name == "headers":
                self._read[name] = _by_name(self._raw[0])
            elif name == "body":
                self._read[name] = _value(self._raw[1], self["headers"])
        value = self._read[name]
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in FIELDS if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _by_name(pairs: HeaderSource) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for name, value in pairs.items() if isinstance(pairs, Mapping) else pairs:
        values.setdefault(name.lower(), []).append(value)
    return values


def _value(body: bytes, headers: Json) -> Json:
    value = read_json(body)
    if value is not None:  # whatever it is declared as
        return value
    content_type = headers.get("content-type", [""])[0] if isinstance(headers, dict) else ""
    if content_type.partition(";")[0].strip().lower() == _FORM:
        try:
            return parse_qs(body.decode(), keep_blank_values=True, max_num_fields=10_000)
        except ValueError:
            pass
    return None
