"""
Windows and entries: what is used of each ceiling, and the only code that changes it.

Every change is an entry and, in the same statement batch, its sum in the window. The caller
holds the gate, so what was read stays true until its transaction ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from attrs import define, frozen
from sqlalchemy import (
    Connection,
    Executable,
    Row,
    Select,
    and_,
    bindparam,
    func,
    insert,
    or_,
    select,
    update,
)

from gunicorn_admission.webhooks.gates.decision import Standing
from gunicorn_admission.webhooks.gates.gate import Bound
from gunicorn_admission.webhooks.gates.spans import Window
from gunicorn_admission.webhooks.store.schema.gates import entries, windows
from gunicorn_admission.webhooks.store.statements import insert_into

__all__ = ["Account", "Cause", "Held", "read_accounts", "release", "reserve", "settle"]

#: An open reservation: ceiling, start of its window, amount. As JSON in the ledger.
Held = list[tuple[int, int, int]]

_MOVE = (
    update(windows)
    .where(windows.c.ceiling == bindparam("c"), windows.c.starts_at == bindparam("w"))
    .values(
        reserved=windows.c.reserved + bindparam("reserve"),
        settled=windows.c.settled + bindparam("settle"),
    )
)
_ENTER = insert(entries)


@frozen(kw_only=True)
class Cause:
    """For whom an entry is made, and when."""

    at: int
    source: str
    event_id: str
    attempt: int


@define
class Account:
    """
    A ceiling at one instant: its window, and what is used.

    Attributes:
        slices: What counts, oldest first: ``(starts_at, ends_at, used)``.
        now: Never before the latest window that was in use, though the clock may be.
    """

    bound: Bound
    window: Window
    now: int
    cost: int
    reserved: int = 0
    settled: int = 0
    slices: tuple[tuple[int, int | None, int], ...] = ()
    told: bool = False  # that the soft ceiling is crossed

    @property
    def used(self) -> int:
        return self.reserved + self.settled

    @property
    def is_full(self) -> bool:
        """Whether the cost does not fit now. What costs nothing always fits."""
        hard = self.bound.ceiling.hard
        return hard is not None and self.cost > 0 and self.used + self.cost > hard

    @property
    def is_too_small(self) -> bool:
        """Whether the cost never fits."""
        hard = self.bound.ceiling.hard
        return hard is not None and self.cost > hard

    @property
    def crosses_soft(self) -> bool:
        soft = self.bound.ceiling.soft
        return soft is not None and self.used + self.cost > soft

    def fits_at(self) -> int | None:
        """Return when the cost fits, if no more is spent till then; ``None``: never."""
        span, hard = self.bound.ceiling.span, self.bound.ceiling.hard
        used = self.used
        for starts_at, ends_at, amount in self.slices:
            used -= amount
            if hard is None or used + self.cost <= hard:
                return span.frees_at(starts_at, ends_at)
        return self.window.ends_at

    def _next_room(self) -> int | None:
        """Return when the oldest spend no longer counts; of a rolling one, if there is any."""
        span = self.bound.ceiling.span
        if self.slices:
            return span.frees_at(*self.slices[0][:2])
        return self.window.ends_at if span.length_us is None else None

    def standing(self, *, after: bool = False) -> Standing:
        """Return it for people; ``after`` the reservation."""
        ceiling = self.bound.ceiling
        return Standing(
            ceiling=str(ceiling),
            unit=ceiling.unit,
            span=str(ceiling.span),
            zone=ceiling.span.zone,
            window=ceiling.span.period_at(self.now),
            starts_at=self.window.starts_at,
            resets_at=self.fits_at() if self.is_full else self._next_room(),
            hard=ceiling.hard,
            soft=ceiling.soft,
            reserved=self.reserved + (self.cost if after else 0),
            settled=self.settled,
            cost=self.cost,
        )


@lru_cache(maxsize=64)
def _counting(bounds: int) -> Select[Any]:
    """Return what reads the windows that count, of so many ceilings; made once."""
    each = (
        and_(
            windows.c.ceiling == bindparam(f"c{number}"),
            windows.c.starts_at >= bindparam(f"s{number}"),
        )
        for number in range(bounds)
    )
    return select(windows).where(or_(*each)).order_by(windows.c.starts_at)


def read_accounts(
    connection: Connection, bounds: Sequence[Bound], amounts: Mapping[str, int], now: int
) -> list[Account]:
    """Return how each ceiling stands at ``now``."""
    if not bounds:
        return []
    opened = [(bound, bound.ceiling.span.window_at(now)) for bound in bounds]
    wanted: dict[str, int] = {}
    for number, (bound, window) in enumerate(opened):
        wanted[f"c{number}"] = bound.id
        wanted[f"s{number}"] = bound.ceiling.span.counts_from(window, now)
    rows = connection.execute(_counting(len(opened)), wanted).all()
    return [
        _account(bound, window, now, amounts.get(bound.ceiling.unit, 0), rows)
        for bound, window in opened
    ]


def _account(
    bound: Bound, window: Window, now: int, cost: int, rows: Sequence[Row[tuple[object, ...]]]
) -> Account:
    mine = [row for row in rows if row.ceiling == bound.id]
    span = bound.ceiling.span
    if mine and mine[-1].starts_at > window.starts_at:
        # The clock went back. The window before is closed, and stays so.
        now = mine[-1].starts_at
        window = span.window_at(now)
    oldest = span.counts_from(window, now)
    counting = [row for row in mine if row.starts_at >= oldest]
    return Account(
        bound,
        window,
        now,
        cost,
        reserved=sum(row.reserved for row in counting),
        settled=sum(row.settled for row in counting),
        slices=tuple((row.starts_at, row.ends_at, row.reserved + row.settled) for row in counting),
        told=any(
            row.soft_crossed is not None and row.soft_crossed == bound.ceiling.soft
            for row in counting
        ),
    )


@cache
def _add_to_window(dialect: str) -> Executable:
    statement = insert_into(dialect, windows)
    new = statement.excluded
    return statement.on_conflict_do_update(
        index_elements=[windows.c.ceiling, windows.c.starts_at],
        set_={
            "reserved": windows.c.reserved + new.reserved,
            "soft_crossed": func.coalesce(new.soft_crossed, windows.c.soft_crossed),
        },
    )


def reserve(
    connection: Connection, accounts: Sequence[Account], why: Cause, *, beyond: bool = False
) -> Held:
    """
    Reserve the cost in every account; that it fits was looked at before.

    Amounts of 0 are reserved too: what the work did cost is settled into the same window.
    """
    if not accounts:
        return []
    connection.execute(
        _add_to_window(connection.dialect.name),
        [
            {
                "ceiling": account.bound.id,
                "starts_at": account.window.starts_at,
                "ends_at": account.window.ends_at,
                "key": account.window.key,
                "reserved": account.cost,
                "settled": 0,
                "soft_crossed": account.bound.ceiling.soft if account.crosses_soft else None,
            }
            for account in accounts
        ],
    )
    held = [(each.bound.id, each.window.starts_at, each.cost) for each in accounts]
    kind = "beyond" if beyond else "reserve"
    _enter(connection, [(c, w, kind, amount, 0) for c, w, amount in held], why)
    return held


def settle(connection: Connection, held: Held, spent: Sequence[int], why: Cause) -> None:
    """Turn reservations into spend, in the window of the reservation, with the real amounts."""
    moves = [
        (ceiling, starts_at, "settle", -amount, real)
        for (ceiling, starts_at, amount), real in zip(held, spent, strict=True)
    ]
    _move(connection, moves, why)


def release(connection: Connection, held: Held, why: Cause) -> None:
    """End reservations for which nothing was spent."""
    moves = [(ceiling, starts_at, "release", -amount, 0) for ceiling, starts_at, amount in held]
    _move(connection, moves, why)


Move = tuple[int, int, str, int, int]


def _move(connection: Connection, moves: Sequence[Move], why: Cause) -> None:
    if moves:
        connection.execute(
            _MOVE, [{"c": c, "w": w, "reserve": r, "settle": s} for c, w, _, r, s in moves]
        )
        _enter(connection, moves, why)


def _enter(connection: Connection, moves: Sequence[Move], why: Cause) -> None:
    connection.execute(
        _ENTER,
        [
            {
                "at": why.at,
                "ceiling": ceiling,
                "starts_at": starts_at,
                "source": why.source,
                "event_id": why.event_id,
                "attempt": why.attempt,
                "kind": kind,
                "reserved": reserved,
                "settled": settled,
            }
            for ceiling, starts_at, kind, reserved, settled in moves
        ],
    )
