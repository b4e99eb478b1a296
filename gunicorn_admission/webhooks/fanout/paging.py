"""Which page a decision or a death is worth; all in the transaction that took it."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

from gunicorn_admission.webhooks.gates import Decision, Kind, Standing
from gunicorn_admission.webhooks.pages import (
    CeilingReached,
    Condition,
    Page,
    Severity,
    raise_page,
)

__all__ = ["page_death", "page_decision", "page_failing"]

_CONDITIONS: Final = {
    Kind.REFUSED: Condition.REFUSED,
    Kind.DEFERRED: Condition.DEFERRED,
    Kind.REVIEW: Condition.REVIEW,
}
_DAY_US: Final = 24 * 3600 * 1_000_000
_HOUR_US: Final = 3600 * 1_000_000


def page_decision(connection: Connection, decision: Decision, now: int) -> None:
    """Page what a gate stopped, and soft ceilings that were crossed; a repeated answer does not."""
    if not decision.is_new:
        return
    condition = _CONDITIONS.get(decision.kind)
    if condition is not None and decision.standing is not None:
        _page(connection, decision, condition, decision.standing, now)
    for standing in decision.crossed_soft:
        _page(connection, decision, Condition.OVER_SOFT, standing, now)


def page_death(
    connection: Connection, consumer: str, source: str, event_id: str, words: str, now: int
) -> None:
    """Page a dead letter; others of the consumer on the same day only count."""
    _page_consumer(connection, Condition.DEAD, consumer, source, event_id, words, now, _DAY_US)


def page_failing(
    connection: Connection, consumer: str, source: str, event_id: str, words: str, now: int
) -> None:
    """Page an event that fails again and again; others within an hour only count."""
    _page_consumer(connection, Condition.FAILING, consumer, source, event_id, words, now, _HOUR_US)


def _page(
    connection: Connection, decision: Decision, condition: Condition, standing: Standing, now: int
) -> None:
    limit = standing.hard if standing.hard is not None else standing.soft
    raise_page(
        connection,
        Page(
            key=f"{decision.consumer}:{condition.value}:{standing.unit}:{standing.span}:"
            f"{standing.window}",
            condition=condition,
            severity=Severity.CRITICAL if condition is Condition.REFUSED else Severity.WARNING,
            consumer=decision.consumer,
            source=decision.source,
            event_id=decision.event_id,
            ceiling=CeilingReached(
                unit=standing.unit,
                used=standing.used,
                hard=limit or 0,
                soft=standing.soft if condition is Condition.OVER_SOFT else None,
                window=standing.span,
                resets_at=standing.resets_at,
            ),
            reason=None if decision.reason is None else decision.reason.value.replace("_", " "),
            until=standing.resets_at,
        ),
        now,
    )


def _page_consumer(
    connection: Connection,
    condition: Condition,
    consumer: str,
    source: str,
    event_id: str,
    words: str,
    now: int,
    lasts_us: int,
) -> None:
    page = Page(
        key=f"{consumer}:{condition.value}",
        condition=condition,
        severity=Severity.CRITICAL if condition is Condition.DEAD else Severity.WARNING,
        consumer=consumer,
        source=source,
        event_id=event_id,
        reason=words,
        until=now + lasts_us,
    )
    raise_page(connection, page, now)
