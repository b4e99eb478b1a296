"""Where a new subscription begins: ``now``, ``earliest``, ``seq:N`` or ``SOURCE/EVENT_ID``."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.store.schema import events

__all__ = ["find_start"]

_EXPECTED = "now, earliest, seq:N or SOURCE/EVENT_ID"


def find_start(connection: Connection, start_at: str) -> tuple[int, int]:
    """
    Return the number of the first event wanted, and the one behind the last that exists.

    Call it when the revision is held: then each event is either below the second number, or will
    be routed by the new subscription.

    Raises:
        ConfigError: It is none of the four forms, or there is no such event.
    """
    end = int(connection.scalar(select(func.coalesce(func.max(events.c.seq), 0))) or 0) + 1
    if start_at == "now":
        return end, end
    if start_at == "earliest":
        first = connection.scalar(select(func.min(events.c.seq)))
        return end if first is None else int(first), end
    kind, _, number = start_at.partition(":")
    if kind == "seq" and number.isdecimal():
        if int(number) > end:
            raise ConfigError(
                "start_at", start_at, f"a number up to {end}", f"the last event is {end - 1}"
            )
        return int(number), end
    source, slash, event_id = start_at.partition("/")
    if not slash:
        raise ConfigError("start_at", start_at, _EXPECTED, "an event is written stripe/evt_01892")
    seq = connection.scalar(
        select(events.c.seq).where(events.c.source == source, events.c.event_id == event_id)
    )
    if seq is None:
        raise ConfigError(
            "start_at", start_at, _EXPECTED,
            "there is no such event; gunicorn-admission events ls shows those there are",
        )  # fmt: skip
    return int(seq), end
