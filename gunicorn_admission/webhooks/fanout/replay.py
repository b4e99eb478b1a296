"""
Replay: retained events once more to one subscription.

What the ledger has as completed stays completed: the replayed delivery finds that out and ends
without an effect. So a replay after a rollback, or a second one by mistake, does nothing twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from attrs import asdict, frozen
from sqlalchemy import Connection, Row, Select, and_, func, select, update

from gunicorn_admission.webhooks.fanout.fields import Fields
from gunicorn_admission.webhooks.fanout.redrive import note
from gunicorn_admission.webhooks.fanout.route import Route
from gunicorn_admission.webhooks.fanout.routing import delivery_row
from gunicorn_admission.webhooks.fanout.selection import Selection
from gunicorn_admission.webhooks.fanout.states import State
from gunicorn_admission.webhooks.fanout.subscriptions import find_subscription
from gunicorn_admission.webhooks.gates.reopen import reopen
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import deliveries, events, ledger
from gunicorn_admission.webhooks.store.statements import insert

__all__ = ["Replayed", "replay"]

#: Events in one transaction, whose bodies the filter may have to read.
_STEP: Final = 100


@frozen(kw_only=True)
class Replayed:
    """
    What a replay did, or in a dry run would do; each event is in one of these numbers.

    Attributes:
        delivered: Will be delivered: it never was, or without effect.
        again: Was completed and will be done again, since that was forced.
        completed: Is completed: delivered once more, and ended by the ledger without effect.
        waiting: Is not finished anyway.
        unwanted: The subscription's filter does not match it.
    """

    delivered: int = 0
    again: int = 0
    completed: int = 0
    waiting: int = 0
    unwanted: int = 0

    def as_dict(self) -> dict[str, int]:
        """Return it as JSON can hold it."""
        return asdict(self)


def replay(
    store: Store,
    name: str,
    selection: Selection,
    *,
    force: bool = False,
    dry_run: bool = False,
    actor: str = "python",
    progress: Callable[[int, int], None] | None = None,
) -> Replayed:
    """
    Deliver retained events once more.

    Args:
        name: Of the subscription; its present filter applies.
        selection: Which events.
        force: Take back in the ledger that an event is completed. Its effect happens a second
            time, and its cost is spent a second time.
        dry_run: Change nothing, only count.
        progress: Told how many events were looked at, and of how many.

    Raises:
        ConfigError: There is no such subscription.
    """
    with store.read() as connection:
        subscription = find_subscription(connection, name)
        total = connection.scalar(
            select(func.count()).select_from(events).where(*selection.of_events())
        )
    route = Route.of(name, subscription.filter, subscription.order_by)
    counts: Counter[str] = Counter()
    last = 0
    while True:
        query = _page(name, selection, last)

        def step(connection: Connection, query: Select[Any] = query) -> tuple[Counter[str], int]:
            rows = connection.execute(query).all()
            found = Counter(_one(connection, store, route, row, force, dry_run) for row in rows)
            return found, rows[-1].seq if len(rows) == _STEP else -1

        if dry_run:
            with store.read() as connection:
                found, last = step(connection)
        else:
            found, last = store.write(step)
        counts += found
        if progress is not None:
            progress(counts.total(), total or 0)
        if last < 0:
            break
    if not dry_run:
        detail = {**selection.in_words(), "force": force, **counts}
        store.write(lambda connection: note(connection, store, actor, "replay", name, detail))
    return Replayed(**counts)


def _page(name: str, selection: Selection, last: int) -> Select[Any]:
    return (
        select(
            events.c.seq,
            events.c.source,
            events.c.event_id,
            events.c.type,
            events.c.headers,
            events.c.body,
            deliveries.c.state,
            deliveries.c.finished_at,
            ledger.c.state.label("recorded"),
        )
        .outerjoin(
            deliveries,
            and_(deliveries.c.seq == events.c.seq, deliveries.c.subscription == name),
        )
        .outerjoin(
            ledger,
            and_(
                ledger.c.consumer == name,
                ledger.c.source == events.c.source,
                ledger.c.event_id == events.c.event_id,
            ),
        )
        .where(events.c.seq > last, *selection.of_events())
        .order_by(events.c.seq)
        .limit(_STEP)
    )


def _one(
    connection: Connection, store: Store, route: Route, row: Row[Any], force: bool, dry_run: bool
) -> str:
    """Replay one event; the name of the number that it belongs to."""
    fields = Fields(source=row.source, type=row.type, headers=row.headers, body=row.body)
    if not route.wants(fields):
        return "unwanted"
    if row.state is not None and row.finished_at is None:
        return "waiting"
    is_done = row.recorded == "completed"
    if not dry_run:
        now = store.now()
        values = delivery_row(route, row.seq, fields, now)
        fresh = {
            "state": State.PENDING.value,
            "attempts": 0,
            "visible_at": now,
            "order_key": values["order_key"],
            "last_error": None,
            "finished_at": None,
            "updated_at": now,
        }
        # The delivery before the ledger, as everywhere.
        connection.execute(insert(connection, deliveries).on_conflict_do_nothing(), values)
        connection.execute(
            update(deliveries)
            .where(
                deliveries.c.subscription == route.name,
                deliveries.c.seq == row.seq,
                deliveries.c.finished_at.is_not(None),
            )
            .values(fresh)
        )
        if is_done and force:
            reopen(connection, route.name, row.source, row.event_id, now)
    if not is_done:
        return "delivered"
    return "again" if force else "completed"
