"""What a verified body says of itself: JSON read without trust, ids, exact parts of a batch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from gunicorn_admission.webhooks.providers.headers import LONGEST_ID

__all__ = ["Json", "as_id", "as_number", "as_object", "as_text", "digest", "read_json", "split"]

#: A JSON value; what is inside is looked at only through the functions of this module.
Json = object

_BLANK: Final = " \t\n\r"
_DECODER: Final = json.JSONDecoder()


def read_json(body: bytes) -> Json | None:
    """Return the JSON value in a body, or ``None`` where it is ``null`` or no UTF-8 JSON."""
    try:
        value: Json = json.loads(body.decode())
    except (ValueError, RecursionError):  # also of numbers with thousands of digits
        return None
    return value


def as_object(value: Json) -> Mapping[str, Json]:
    """Return a JSON object, or an empty one where the value is something else."""
    return value if isinstance(value, dict) else {}


def as_text(value: Json) -> str | None:
    """Return a short printable text, or ``None``."""
    if isinstance(value, str) and 0 < len(value) <= LONGEST_ID and value.isprintable():
        return value
    return None


def as_id(value: Json) -> str | None:
    """Return a text or a whole number as an id, or ``None``."""
    if isinstance(value, int) and not isinstance(value, bool):
        return as_text(str(value))
    return as_text(value)


def as_number(value: Json) -> float | None:
    """Return a number that can be a time, or ``None``."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 10**15:
        return float(value)
    return None


def digest(body: bytes) -> str:
    """Return the id of bytes that have no id of their own."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def split(body: bytes, member: str | None = None) -> list[tuple[Json, bytes]] | None:
    """
    Return each element of a batch with the exact bytes it had, or ``None`` if it is no batch.

    Args:
        body: UTF-8 JSON: an array, or with ``member`` an object in which an array has that name.
        member: Name of the array.
    """
    try:
        text = body.decode()
        begin, end = _skip(text, 0), len(text)
        if member is not None:
            begin, end = _find_member(text, begin, member)
        elements, behind = _elements(text, begin)
        if text[behind:end].strip(_BLANK):
            return None  # something stands behind the array
        return [(value, text[first:last].encode()) for value, first, last in elements]
    except (ValueError, IndexError, RecursionError):
        return None


def _skip(text: str, at: int) -> int:
    while text[at] in _BLANK:
        at += 1
    return at


def _expect(text: str, at: int, character: str) -> int:
    """Return where the next thing begins, behind one character that must be there."""
    if text[at] != character:
        raise ValueError(at)
    return _skip(text, at + 1)


def _elements(text: str, at: int) -> tuple[list[tuple[Json, int, int]], int]:
    """Return value, begin and end of each element of an array, and where the array ends."""
    found: list[tuple[Json, int, int]] = []
    at = _expect(text, at, "[")
    while found or text[at] != "]":
        value, end = _DECODER.raw_decode(text, at)
        found.append((value, at, end))
        at = _skip(text, end)
        if text[at] == "]":
            break
        at = _expect(text, at, ",")
    return found, at + 1


def _find_member(text: str, at: int, member: str) -> tuple[int, int]:
    """Return begin and end of a value in an object; the last one, as ``json`` reads doubles."""
    found: tuple[int, int] | None = None
    at = _expect(text, at, "{")
    while True:
        name, end = _DECODER.raw_decode(text, at)
        begin = _expect(text, _skip(text, end), ":")
        _, end = _DECODER.raw_decode(text, begin)
        if name == member:
            found = begin, end
        at = _skip(text, end)
        if text[at] == "}":
            break
        at = _expect(text, at, ",")
    if found is None:
        raise ValueError(member)
    return found
