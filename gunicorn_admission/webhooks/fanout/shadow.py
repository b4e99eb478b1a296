"""
Shadow: what a new consumer would have been given, held against what the intake stored.

A subscription in shadow takes its deliveries through the same claims as an active one and has no
effect. Its record agrees with the intake, or something between the two is wrong; better to know
that before there are effects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from attrs import asdict, field, frozen
from sqlalchemy import Connection, and_, select

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.fanout.fields import Fields
from gunicorn_admission.webhooks.fanout.route import Route
from gunicorn_admission.webhooks.fanout.states import Mode
from gunicorn_admission.webhooks.fanout.subscriptions import Subscriptions, find_subscription
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import deliveries, events

__all__ = ["ShadowDiff", "promote", "rollback", "shadow_diff"]

_STEP: Final = 500  # events at once, whose bodies the filter may have to read
_NAMED: Final = 20  # events that are named of each kind


@frozen(kw_only=True)
class ShadowDiff:
    """
    One subscription against the intake.

    Attributes:
        name: Of the subscription.
        mode: That it is in.
        events: Stored events that its filter matches.
        acknowledged: Of these, the ones that it is done with; in shadow, that it has seen.
        waiting: Not done with yet.
        missing: Events without a delivery, and how many; up to 20 are named.
        unexpected: Deliveries whose event its present filter does not match.
        slowest: Seconds from the intake to the acknowledgement, at most.
        median: The same in the middle.
    """

    name: str
    mode: Mode
    events: int
    acknowledged: int
    waiting: int
    missing: int
    unexpected: int
    missing_events: tuple[str, ...] = field(default=())
    unexpected_events: tuple[str, ...] = field(default=())
    slowest: float | None = None
    median: float | None = None

    @property
    def agrees(self) -> bool:
        """Whether each event that is wanted was delivered and acknowledged, and no other."""
        return not (self.waiting or self.missing or self.unexpected)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {**asdict(self), "mode": self.mode.value, "agrees": self.agrees}


def shadow_diff(store: Store, name: str, *, since: int | None = None) -> ShadowDiff:
    """
    Hold a subscription's record against the events that the intake stored.

    Args:
        since: Only events that came from then on, in microseconds since the epoch. Events from
            before the subscription's start are never looked at.

    Raises:
        ConfigError: There is no such subscription.
    """
    missing: list[str] = []
    unexpected: list[str] = []
    lags: list[float] = []
    wanted = waiting = 0
    with store.read() as connection:
        subscription = find_subscription(connection, name)
        route = Route.of(name, subscription.filter, subscription.order_by)
        for row in _rows(connection, name, subscription.start_seq, since):
            event = f"{row.source}/{row.event_id}"
            matches = route.wants(
                Fields(source=row.source, type=row.type, headers=row.headers, body=row.body)
            )
            wanted += matches
            if row.state is None:
                backfilled_later = (
                    subscription.backfill_next is not None
                    and subscription.backfill_end is not None
                    and subscription.backfill_next <= row.seq < subscription.backfill_end
                )
                if matches and backfilled_later:
                    waiting += 1
                elif matches:
                    missing.append(event)
            elif not matches:
                unexpected.append(event)
            elif row.finished_at is None:
                waiting += 1
            else:
                lags.append((row.finished_at - row.received_at) / 1e6)
    lags.sort()
    return ShadowDiff(
        name=name,
        mode=subscription.mode,
        events=wanted,
        acknowledged=len(lags),
        waiting=waiting,
        missing=len(missing),
        unexpected=len(unexpected),
        missing_events=tuple(missing[:_NAMED]),
        unexpected_events=tuple(unexpected[:_NAMED]),
        slowest=lags[-1] if lags else None,
        median=lags[len(lags) // 2] if lags else None,
    )


def promote(store: Store, name: str, *, force: bool = False, actor: str = "python") -> ShadowDiff:
    """
    Give a shadow subscription its effects, from the next event on.

    What it saw in shadow stays without effect; ``replay`` delivers that, if it is wanted.

    Args:
        force: Also where the record does not agree with the intake.

    Raises:
        ConfigError: It is not in shadow, or does not agree.
    """
    diff = shadow_diff(store, name)
    if diff.mode is not Mode.SHADOW:
        raise ConfigError(
            "subscription", name, f"one in shadow, and it is {diff.mode.value}",
            f"gunicorn-admission subscriptions resume {name} ends a pause",
        )  # fmt: skip
    if not diff.agrees and not force:
        raise ConfigError(
            "subscription", name,
            f"agreement with the intake, and {diff.missing} events are missing, "
            f"{diff.waiting} wait, {diff.unexpected} were not expected",
            f"gunicorn-admission shadow diff {name} names them; --force promotes all the same",
        )  # fmt: skip
    Subscriptions(store, actor=actor).set_mode(name, Mode.ACTIVE)
    return diff


def rollback(store: Store, name: str, *, actor: str = "python") -> None:
    """
    Take a consumer out and leave the intake and all other consumers alone.

    Its ledger and its deliveries stay, and it goes on collecting within its retention: when it
    returns, what is completed stays completed, however often it is replayed.

    Raises:
        ConfigError: There is no such subscription.
    """
    Subscriptions(store, actor=actor).disable(name)


def _rows(connection: Connection, name: str, start: int, since: int | None) -> Iterator[Any]:
    conditions = [events.c.seq >= start]
    if since is not None:
        conditions.append(events.c.received_at >= since)
    last = 0
    while True:
        rows = connection.execute(
            select(
                events.c.seq,
                events.c.source,
                events.c.event_id,
                events.c.type,
                events.c.headers,
                events.c.body,
                events.c.received_at,
                deliveries.c.state,
                deliveries.c.finished_at,
            )
            .outerjoin(
                deliveries,
                and_(deliveries.c.seq == events.c.seq, deliveries.c.subscription == name),
            )
            .where(events.c.seq > last, *conditions)
            .order_by(events.c.seq)
            .limit(_STEP)
        ).all()
        yield from rows
        if len(rows) < _STEP:
            return
        last = rows[-1].seq
