"""Which deliveries or events are meant: by id, source, type, time, state or error."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen
from sqlalchemy import ColumnElement, or_, tuple_

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.store.schema import deliveries, events

__all__ = ["Selection", "parse_event"]


def parse_event(text: str) -> tuple[str, str]:
    """
    Return source and id of an event that is written ``SOURCE/EVENT_ID``.

    Raises:
        ConfigError: It is not.
    """
    source, slash, event_id = text.partition("/")
    if not (source and slash and event_id):
        raise ConfigError("event", text, "SOURCE/EVENT_ID", "write stripe/evt_01892")
    return source, event_id


def _pairs(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(pairs)


@frozen(kw_only=True)
class Selection:
    """
    Conditions that all must hold; one that is not given holds always.

    Attributes:
        events: Source and id of single events.
        source: Where they came from.
        type: What happened; a ``*`` at the end stands for anything.
        since, until: When they came, in microseconds since the epoch; the second is excluded.
        error: Text that the last error contains; of deliveries only.

    Thread safety: immutable.
    """

    events: tuple[tuple[str, str], ...] = field(default=(), converter=_pairs)
    source: str | None = None
    type: str | None = None
    since: int | None = None
    until: int | None = None
    error: str | None = None

    @property
    def is_everything(self) -> bool:
        """Whether no condition was given."""
        return self == Selection()

    def of_events(self) -> list[ColumnElement[bool]]:
        """Return the conditions on the table of events."""
        found: list[ColumnElement[bool]] = []
        if self.events:
            found.append(
                or_(*(tuple_(events.c.source, events.c.event_id) == pair for pair in self.events))
            )
        if self.source is not None:
            found.append(events.c.source == self.source)
        if self.type is not None:
            stem = self.type.removesuffix("*")
            is_prefix = self.type.endswith("*")
            found.append(
                events.c.type.startswith(stem, autoescape=True)
                if is_prefix
                else events.c.type == stem
            )
        if self.since is not None:
            found.append(events.c.received_at >= self.since)
        if self.until is not None:
            found.append(events.c.received_at < self.until)
        return found

    def of_deliveries(self) -> list[ColumnElement[bool]]:
        """Return all conditions, on deliveries joined with their events."""
        found = self.of_events()
        if self.error is not None:
            found.append(deliveries.c.last_error.contains(self.error, autoescape=True))
        return found

    def in_words(self) -> dict[str, object]:
        """Return what was given, for the audit."""
        words: dict[str, object] = {
            name: value
            for name in ("source", "type", "since", "until", "error")
            if (value := getattr(self, name)) is not None
        }
        if self.events:
            words["events"] = ["/".join(pair) for pair in self.events[:20]]
        return words
