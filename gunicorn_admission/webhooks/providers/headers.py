"""Request headers as a verifier may use them: one value each, bounded, visible ASCII."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from gunicorn_admission.webhooks.providers.outcome import Reason, Refusal

__all__ = ["HeaderSource", "Headers", "LONGEST_HEADER", "LONGEST_ID"]

#: What ``verify`` takes: a mapping, or pairs in which a name may come twice (Werkzeug's headers
#: are such pairs). Values are text as WSGI has it, one character a byte.
HeaderSource = Mapping[str, str] | Iterable[tuple[str, str]]

#: Characters a header may have before it is refused unread. The longest genuine one is a list
#: of signatures during a rotation.
LONGEST_HEADER: Final = 2048

#: Characters an event id may have; what a column of the store holds.
LONGEST_ID: Final = 255

_VISIBLE: Final = re.compile(r"[ -~]*", re.ASCII)
# A comma is how servers join a header that came twice.
_ID: Final = re.compile(r"[!-+\--~]+", re.ASCII)


class Headers:
    """
    Headers by name, in any case.

    Thread safety: immutable.
    """

    __slots__ = ("_values",)

    def __init__(self, source: HeaderSource) -> None:
        values: dict[str, list[str]] = {}
        for name, value in source.items() if isinstance(source, Mapping) else source:
            values.setdefault(name.lower(), []).append(value)
        self._values = values

    def find(self, name: str) -> str | None:
        """
        Return the one value of a header, without surrounding blanks, or ``None``.

        Raises:
            Refusal: It came twice, is too long or holds anything but visible ASCII.
        """
        values = self._values.get(name.lower())
        if not values:
            return None
        if len(values) > 1:
            raise Refusal(Reason.DUPLICATE_HEADER, name)
        value = values[0]
        if len(value) > LONGEST_HEADER:
            raise Refusal(Reason.HEADER_TOO_LONG, name)
        if not _VISIBLE.fullmatch(value):
            raise Refusal(Reason.MALFORMED_HEADER, name)
        return value.strip()

    def require(self, name: str) -> str:
        """
        Return the one value of a header that must be there.

        Raises:
            Refusal: As :meth:`find`, and where it is absent or empty.
        """
        value = self.find(name)
        if not value:
            raise Refusal(Reason.MISSING_HEADER, name)
        return value

    def find_id(self, name: str) -> str | None:
        """
        Return an event id from a header, or ``None`` where there is none.

        Raises:
            Refusal: As :meth:`find`, and where it cannot be one id.
        """
        value = self.find(name)
        if not value:
            return None
        if len(value) > LONGEST_ID:
            raise Refusal(Reason.HEADER_TOO_LONG, name)
        if not _ID.fullmatch(value):
            raise Refusal(Reason.MALFORMED_HEADER, name)
        return value

    def hint(self, name: str) -> str | None:
        """Return a header that only describes, or ``None`` if it is absent or unusable."""
        values = self._values.get(name.lower(), ())
        if len(values) != 1 or not 0 < len(values[0]) <= LONGEST_ID:
            return None
        return values[0].strip() or None if _VISIBLE.fullmatch(values[0]) else None
