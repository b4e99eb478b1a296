"""
All subscriptions of a store: made, changed, paused, removed.

Every change takes the revision first, so that it and the intakes under way wait for each other
(``revision.py``), and leaves a line in the audit.
"""

from __future__ import annotations

from typing import Any

import attrs
from sqlalchemy import Connection, and_, delete, select, update

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.webhooks.fanout.revision import advance
from gunicorn_admission.webhooks.fanout.start import find_start
from gunicorn_admission.webhooks.fanout.states import Mode, State
from gunicorn_admission.webhooks.fanout.subscription import Subscription, check_name, parse_mode
from gunicorn_admission.webhooks.gates import Ledger
from gunicorn_admission.webhooks.gates.configure import check_deferral
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import (
    attempts,
    audit,
    deliveries,
    events,
    ledger,
    subscriptions,
)

__all__ = ["Subscriptions", "find_subscription"]

_CHANGEABLE = (
    "filter", "retry", "retention", "lease", "objective", "severity", "runbook", "order_by",
)  # fmt: skip


def find_subscription(connection: Connection, name: str) -> Subscription:
    """
    Return a subscription.

    Raises:
        ConfigError: There is none of that name.
    """
    row = connection.execute(
        select(subscriptions).where(subscriptions.c.name == name)
    ).one_or_none()
    if row is None:
        names = list(connection.scalars(select(subscriptions.c.name)))
        hint = did_you_mean(name, names) if names else "there is none yet"
        raise ConfigError(
            "subscription", name, "the name of a subscription",
            f"{hint}; gunicorn-admission subscriptions create {name}",
        )  # fmt: skip
    return Subscription.of(row)


class Subscriptions:
    """
    The subscriptions of a store.

    Args:
        store: Where they are kept.
        actor: Who makes the changes, for the audit.

    Thread safety: may be used from any thread.
    """

    def __init__(self, store: Store, *, actor: str = "python") -> None:
        self._store = store
        self._actor = actor

    def all(self) -> list[Subscription]:
        """Return all, by name."""
        with self._store.read() as connection:
            rows = connection.execute(select(subscriptions).order_by(subscriptions.c.name)).all()
        return [Subscription.of(row) for row in rows]

    def get(self, name: str) -> Subscription:
        """
        Return one.

        Raises:
            ConfigError: There is none of that name.
        """
        with self._store.read() as connection:
            return find_subscription(connection, name)

    def create(self, name: str, *, start_at: str = "now", **values: Any) -> Subscription:
        """
        Make a subscription; from its commit on each new event that matches is delivered to it.

        Args:
            name: Of the consumer.
            start_at: ``now``; ``earliest``, ``seq:N`` or ``SOURCE/EVENT_ID`` for events that
                came before, which workers, or ``backfill``, add afterwards in small steps.
            values: ``filter``, ``mode``, ``retry``, ``retention``, ``lease``, ``objective``,
                ``severity``, ``runbook``, ``order_by``, as :class:`Subscription` has them.

        Raises:
            ConfigError: A value cannot work, or the name is taken.
        """
        wanted = _checked(Subscription, {"name": name, **values}, (*_CHANGEABLE, "mode", "name"))

        def work(connection: Connection) -> Subscription:
            now = self._store.now()
            advance(connection, now)
            if connection.scalar(
                select(subscriptions.c.name).where(subscriptions.c.name == wanted.name)
            ):
                raise ConfigError(
                    "name", name, "a name that is not taken", f"subscriptions update {name}"
                )
            check_deferral(connection, name, round(wanted.retention * 1e6))
            check_deferral(connection, name, wanted.as_row()["retention_us"])
            start, end = find_start(connection, start_at)
            made = attrs.evolve(
                wanted,
                start_seq=start,
                backfill_next=start if start < end else None,
                backfill_end=end if start < end else None,
                created_at=now,
                mode_since=now,
            )
            connection.execute(subscriptions.insert(), made.as_row())
            self._note(connection, "subscription.create", name, {**values, "start_at": start_at})
            return made

        return self._store.write(work)

    def ensure(self, name: str, **values: Any) -> Subscription:
        """Return the subscription of that name as it is; make it where there is none."""
        try:
            return self.get(name)
        except ConfigError:
            check_name(name)  # was it that?
        try:
            return self.create(name, **values)
        except ConfigError as error:
            if error.field != "name":
                raise
            return self.get(name)  # another process was quicker

    def update(self, name: str, **values: Any) -> Subscription:
        """
        Change some values. ``filter`` and ``order_by`` hold for events that come from now on.

        Raises:
            ConfigError: A value cannot work, there is no such subscription, or its gate defers
                work for longer than the new retention.
        """

        def change(old: Subscription, now: int) -> Subscription:
            return _checked(lambda **new: attrs.evolve(old, **new), values, _CHANGEABLE)

        return self._change(name, "subscription.update", values, change)

    def set_mode(self, name: str, mode: Mode | str) -> Subscription:
        """
        Activate, shadow, pause or disable. Workers heed it with their next claim; what they hold
        they finish.

        Raises:
            ConfigError: There is no such mode or subscription.
        """
        wanted = parse_mode(mode)

        def change(old: Subscription, now: int) -> Subscription:
            since = old.mode_since if old.mode is wanted else now
            return attrs.evolve(old, mode=wanted, mode_since=since)

        return self._change(name, f"subscription.{wanted.value}", {}, change)

    def pause(self, name: str) -> Subscription:
        """Deliver nothing for now, and go on collecting."""
        return self.set_mode(name, Mode.PAUSED)

    def resume(self, name: str) -> Subscription:
        """Deliver again, beginning with what was collected."""
        return self.set_mode(name, Mode.ACTIVE)

    def disable(self, name: str) -> Subscription:
        """Deliver nothing and expect nothing; events are still collected within retention."""
        return self.set_mode(name, Mode.DISABLED)

    def remove(self, name: str) -> int:
        """
        Remove a subscription and its deliveries. Events stay, and so does the ledger: a
        subscription of the same name will not repeat what is completed. What its unfinished
        events had reserved is released.

        Returns:
            How many deliveries were not finished.

        Raises:
            ConfigError: There is no such subscription.
        """

        def work(connection: Connection) -> int:
            advance(connection, self._store.now())
            find_subscription(connection, name)
            _release(connection, name, self._store.now())
            open_ones = connection.execute(
                delete(deliveries).where(
                    deliveries.c.subscription == name, deliveries.c.finished_at.is_(None)
                )
            ).rowcount
            connection.execute(delete(deliveries).where(deliveries.c.subscription == name))
            connection.execute(delete(attempts).where(attempts.c.subscription == name))
            connection.execute(delete(subscriptions).where(subscriptions.c.name == name))
            self._note(connection, "subscription.remove", name, {"unfinished": open_ones})
            return int(open_ones)

        return self._store.write(work)

    def _change(self, name: str, action: str, detail: dict[str, Any], change: Any) -> Subscription:
        def work(connection: Connection) -> Subscription:
            now = self._store.now()
            advance(connection, now)
            old = find_subscription(connection, name)
            new: Subscription = change(old, now)
            if new.retention != old.retention:
                check_deferral(connection, name, round(new.retention * 1e6))
            if new.retention != old.retention:
                check_deferral(connection, name, new.as_row()["retention_us"])
            if new != old:
                connection.execute(
                    update(subscriptions).where(subscriptions.c.name == name).values(new.as_row())
                )
                self._note(connection, action, name, detail)
            return new

        return self._store.write(work)

    def _note(
        self, connection: Connection, action: str, subject: str, detail: dict[str, Any]
    ) -> None:
        plain = {
            key: value.as_dict() if hasattr(value, "as_dict") else value
            for key, value in detail.items()
        }
        connection.execute(
            audit.insert(),
            {
                "at": self._store.now(),
                "actor": self._actor,
                "action": action,
                "subject": subject,
                "detail": plain,
            },
        )


def _release(connection: Connection, name: str, now: int) -> None:
    """Bury what holds a reservation and will not be delivered any more."""
    holding = connection.execute(
        select(events.c.source, events.c.event_id, deliveries.c.state, deliveries.c.lease)
        .join(events, events.c.seq == deliveries.c.seq)
        .join(
            ledger,
            and_(
                ledger.c.consumer == deliveries.c.subscription,
                ledger.c.source == events.c.source,
                ledger.c.event_id == events.c.event_id,
            ),
        )
        .where(
            deliveries.c.subscription == name,
            deliveries.c.finished_at.is_(None),
            ledger.c.held.is_not(None),
        )
        .order_by(deliveries.c.seq)
        .with_for_update(of=deliveries)
    ).all()
    book = Ledger()  # one for all: it reads the gate once
    for row in holding:
        # With its lease an attempt under way is fenced off: it cannot complete any more.
        lease = row.lease if row.state == State.LEASED.value else None
        book.bury(
            connection, consumer=name, source=row.source, event_id=row.event_id, now=now,
            lease=lease,
        )  # fmt: skip


def _checked(make: Any, values: dict[str, Any], known: tuple[str, ...]) -> Subscription:
    for name, value in values.items():
        if name not in known:
            raise ConfigError(name, value, f"one of {', '.join(known)}", did_you_mean(name, known))
    made: Subscription = make(**values)
    return made
