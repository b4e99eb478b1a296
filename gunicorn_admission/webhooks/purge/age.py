"""How old a row must be before it may go."""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen
from sqlalchemy import ColumnElement, Connection, case, func, literal, select

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import format_duration
from gunicorn_admission.webhooks.providers import Facts
from gunicorn_admission.webhooks.providers.registry import provider_class
from gunicorn_admission.webhooks.store.schema import sources, subscriptions

__all__ = ["Age", "Cutoffs", "read_cutoffs"]

DAY: Final = 86_400.0

#: Seconds on top of what a sender says, for its clock and for a delivery that is under way.
_MARGIN: Final = DAY


@frozen(kw_only=True)
class Age:
    """
    How long things are kept at least, in seconds.

    Attributes:
        events: Events with their deliveries. Longer where a subscription's retention, or the time
            in which the sender may deliver again, is longer.
        records: What says that an event came, or what became of it at a consumer, and so keeps it
            from being done twice. Longer in the same cases.
    """

    events: float = 30 * DAY
    records: float = 90 * DAY

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.events <= self.records:
            raise ConfigError(
                "records",
                format_duration(self.records),
                f"at least as long as events ({format_duration(self.events)})",
                "the record outlives the event, or a late delivery would be done again",
            )


@frozen(kw_only=True)
class Cutoffs:
    """
    Rows from before these times may go; microseconds since the epoch, by source.

    A source that is not there any more says nothing, so its events stay as long as records.
    """

    events: dict[str, int]
    records: dict[str, int]
    other_events: int
    other_records: int

    def event(self, source: ColumnElement[Any]) -> ColumnElement[int]:
        """Return the cutoff of an event as SQL."""
        return _by_source(source, self.events, self.other_events)

    def record(self, source: ColumnElement[Any]) -> ColumnElement[int]:
        """Return the cutoff of a record as SQL."""
        return _by_source(source, self.records, self.other_records)

    @property
    def latest(self) -> int:
        """No event that came later may go."""
        return max((self.other_events, *self.events.values()))


def read_cutoffs(connection: Connection, age: Age, now: int) -> Cutoffs:
    """
    Say how old is old enough, at a time and for the sources and subscriptions there are.

    Raises:
        ConfigError: The provider of a source is not installed, and so nobody knows how long it
            may deliver again.
    """
    retention = (connection.scalar(select(func.max(subscriptions.c.retention_us))) or 0) / 1e6
    known = connection.execute(select(sources.c.name, sources.c.provider))
    again = {name: _delivers_again(provider_class(provider).facts) for name, provider in known}

    def before(*kept: float) -> int:
        return now - round(max(kept) * 1e6)

    records = max(age.records, retention + _MARGIN)
    return Cutoffs(
        events={name: before(age.events, seconds) for name, seconds in again.items()},
        records={name: before(records, seconds) for name, seconds in again.items()},
        other_events=before(records),
        other_records=before(records),
    )


def _delivers_again(facts: Facts) -> float:
    """Seconds in which a sender may deliver an event again, by itself or because it is asked."""
    window = facts.redelivery.window if facts.redelivery is not None else None
    return max(window or 0, facts.retries.span or 0) + _MARGIN


def _by_source(
    source: ColumnElement[Any], cutoffs: dict[str, int], other: int
) -> ColumnElement[int]:
    if not cutoffs:
        return literal(other)
    return case(*((source == name, cutoff) for name, cutoff in cutoffs.items()), else_=other)
