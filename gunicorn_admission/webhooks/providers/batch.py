"""Batches of events in one request, for the senders that collect."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gunicorn_admission.webhooks.providers.outcome import IdSource, Item
from gunicorn_admission.webhooks.providers.payload import Json, digest, split

__all__ = ["Entry", "read_batch"]


class Entry(NamedTuple):
    """What one element of a batch says of itself."""

    event_id: str | None
    event_type: str | None
    timestamp: float | None = None


def read_batch(
    body: bytes, read: Callable[[Json], Entry], *, member: str | None = None
) -> tuple[Item, ...] | None:
    """
    Return the events of a batch, each with its exact bytes, or ``None`` if it is no batch.

    Args:
        body: The verified body.
        read: Reads one element; must not fail on any value.
        member: Name of the array, where it is inside of an object.
    """
    elements = split(body, member)
    if elements is None:
        return None
    return tuple(_item(read(value), part) for value, part in elements)


def _item(entry: Entry, part: bytes) -> Item:
    event_id, source = entry.event_id, IdSource.BODY
    if event_id is None:
        event_id, source = digest(part), IdSource.DIGEST
    return Item(
        event_id=event_id,
        id_source=source,
        event_type=entry.event_type,
        timestamp=entry.timestamp,
        body=part,
    )
