"""
Going through the tables, a few rows at a time.

What may go is looked for on a snapshot, which holds up nobody. It is removed in short writes that
look again: what was redriven meanwhile stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from attrs import field, frozen
from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    Table,
    and_,
    delete,
    func,
    or_,
    select,
    tuple_,
)

from gunicorn_admission.webhooks.purge.age import Age, Cutoffs, read_cutoffs
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import (
    attempts,
    deliveries,
    events,
    ledger,
    nonces,
    notices,
    pages,
    subscriptions,
)

__all__ = ["Purged", "purge"]

#: Rows in one write.
_BATCH: Final = 200

#: States of the ledger in which nothing is open.
_CLOSED: Final = ("completed", "refused", "rejected", "dead", "skipped")


@frozen(kw_only=True)
class Purged:
    """
    What was removed, or would be.

    Attributes:
        removed: Rows by table.
        size: Bytes of the bodies among them.
        dead_letters: Deliveries among them that had failed for good.
        held: Events that are old enough and stay, because a subscription is not done with them;
            by subscription.
    """

    removed: Mapping[str, int]
    size: int = 0
    dead_letters: int = 0
    held: Mapping[str, int] = field(factory=dict)


def purge(
    store: Store,
    age: Age | None = None,
    *,
    dry_run: bool = False,
    progress: Callable[[int], None] = lambda rows: None,
) -> Purged:
    """
    Remove what is old enough. Harmless at any time, beside everything else.

    An event goes when every subscription is done with it and its retention is over; deliveries
    and attempts go with it. What remains in the ledger, used nonces and pages that are over go
    later.

    Args:
        age: How long things are kept at least.
        dry_run: Count, and remove nothing.
        progress: Is told after each batch how many rows it had.

    Raises:
        ConfigError: The provider of a source is not installed.
        StoreError: The database failed. What was removed before stays removed.
    """
    with store.read() as connection:
        cutoffs = read_cutoffs(connection, age or Age(), store.now())
        held = _held(connection, cutoffs)
    total: Counter[str] = Counter()
    for step in (
        _events(store, cutoffs, dry_run),
        _sweep(store, ledger, _old_record(cutoffs), dry_run),
        _sweep(store, nonces, nonces.c.seen_at < cutoffs.record(nonces.c.source), dry_run),
        _sweep(store, notices, notices.c.page.in_(_old_pages(cutoffs)), dry_run),
        _sweep(store, pages, pages.c.key.in_(_old_pages(cutoffs)), dry_run),
    ):
        for count in step:
            total += count
            progress(sum(number for name, number in count.items() if name.startswith("webhook_")))
    size, dead_letters = total.pop("size", 0), total.pop("dead_letters", 0)
    return Purged(removed=dict(total), size=size, dead_letters=dead_letters, held=held)


def _may_go(cutoffs: Cutoffs, now: int) -> ColumnElement[bool]:
    """An event that is old enough, and that nobody needs."""
    needed = (
        select(1)
        .select_from(deliveries.join(subscriptions))
        .where(
            deliveries.c.seq == events.c.seq,
            or_(
                deliveries.c.finished_at.is_(None),
                events.c.received_at > now - subscriptions.c.retention_us,
            ),
        )
    )
    to_come = select(1).where(
        # A new subscription that begins with older events has not looked at this one yet.
        subscriptions.c.backfill_next <= events.c.seq,
        events.c.seq < subscriptions.c.backfill_end,
    )
    return and_(
        events.c.received_at < cutoffs.event(events.c.source),
        ~needed.correlate(events).exists(),
        ~to_come.correlate(events).exists(),
    )


def _held(connection: Connection, cutoffs: Cutoffs) -> dict[str, int]:
    statement = (
        select(deliveries.c.subscription, func.count())
        .join(events, events.c.seq == deliveries.c.seq)
        .where(
            deliveries.c.finished_at.is_(None),
            events.c.received_at < cutoffs.event(events.c.source),
        )
        .group_by(deliveries.c.subscription)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def _events(store: Store, cutoffs: Cutoffs, dry_run: bool) -> Iterator[Counter[str]]:
    may_go = _may_go(cutoffs, store.now())
    with store.read() as connection:
        # So that the last batch does not look through all that is younger.
        old = events.c.received_at < cutoffs.latest
        last = connection.scalar(select(func.max(events.c.seq)).where(old)) or 0
    after = 0
    while True:
        batch = select(events.c.seq).where(events.c.seq > after, events.c.seq <= last, may_go)
        with store.read() as connection:
            seqs = list(connection.scalars(batch.order_by(events.c.seq).limit(_BATCH)))
            if not seqs:
                return
            if dry_run:
                yield _count(connection, seqs)
        after = seqs[-1]
        if not dry_run:
            yield store.write(partial(_remove, seqs=seqs, may_go=may_go))


def _count(connection: Connection, seqs: list[int]) -> Counter[str]:
    gone = events.c.seq.in_(seqs)
    done = select(deliveries.c.state).where(deliveries.c.seq.in_(seqs))
    states = list(connection.scalars(done))
    tried = select(func.count()).select_from(attempts).where(attempts.c.seq.in_(seqs))
    return Counter(
        webhook_event=len(seqs),
        webhook_delivery=len(states),
        webhook_attempt=connection.scalar(tried) or 0,
        size=connection.scalar(select(func.sum(events.c.size)).where(gone)) or 0,
        dead_letters=states.count("dead"),
    )


def _remove(connection: Connection, seqs: list[int], may_go: ColumnElement[bool]) -> Counter[str]:
    # On PostgreSQL: with the event locked, nobody can add a delivery of it; and a delivery that
    # is being redriven is waited for, and seen as it is then.
    lock = select(events.c.seq).where(events.c.seq.in_(seqs), may_go)
    locked = set(connection.scalars(lock.with_for_update(of=events, skip_locked=True)))
    again = select(deliveries.c.seq, deliveries.c.finished_at).where(deliveries.c.seq.in_(locked))
    for seq, finished_at in connection.execute(again.with_for_update()):
        if finished_at is None:
            locked.discard(seq)
    gone = sorted(locked)
    count = _count(connection, gone)
    for table in (attempts, deliveries, events):
        connection.execute(delete(table).where(table.c.seq.in_(gone)))
    return count


def _old_record(cutoffs: Cutoffs) -> ColumnElement[bool]:
    still_there = select(1).where(
        events.c.source == ledger.c.source, events.c.event_id == ledger.c.event_id
    )
    return and_(
        ledger.c.updated_at < cutoffs.record(ledger.c.source),
        ledger.c.state.in_(_CLOSED),
        ~still_there.correlate(ledger).exists(),
    )


def _run(connection: Connection, statement: Delete) -> int:
    return connection.execute(statement).rowcount


def _old_pages(cutoffs: Cutoffs) -> Any:
    return select(pages.c.key).where(
        pages.c.resolved_at < cutoffs.other_records, pages.c.last_at < cutoffs.other_records
    )


def _sweep(
    store: Store, table: Table, may_go: ColumnElement[bool], dry_run: bool
) -> Iterator[Counter[str]]:
    """Go through a table in the order of its key."""
    columns = list(table.primary_key)
    key = tuple_(*columns)
    after: tuple[Any, ...] | None = None
    while True:
        batch = select(*columns).where(may_go).order_by(*columns).limit(_BATCH)
        if after is not None:
            batch = batch.where(key > after)
        with store.read() as connection:
            keys = [tuple(row) for row in connection.execute(batch)]
        if not keys:
            return
        after = keys[-1]
        number = len(keys)
        if not dry_run:
            number = store.write(
                partial(_run, statement=delete(table).where(key.in_(keys), may_go))
            )
        yield Counter({table.name: number})
