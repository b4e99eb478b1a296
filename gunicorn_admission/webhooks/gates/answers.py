"""What to answer about an event: what was answered before, or else what the ceilings say now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import asdict, field, frozen
from sqlalchemy import Connection, Row

from gunicorn_admission.webhooks.gates import book
from gunicorn_admission.webhooks.gates.decision import Decision, Kind, Reason, Standing
from gunicorn_admission.webhooks.gates.gate import Gate
from gunicorn_admission.webhooks.gates.policy import AtCeiling, Charge
from gunicorn_admission.webhooks.gates.record import Key, State, count_duplicate, held_of

__all__ = ["APPROVED", "Answer", "BEYOND", "cause", "decide", "recorded"]

#: An operator's permit: to run when there is room, or to pass a ceiling that has none.
APPROVED, BEYOND = "approved", "beyond"

_KINDS = {
    State.REFUSED: Kind.REFUSED,
    State.REJECTED: Kind.REFUSED,
    State.REVIEW: Kind.REVIEW,
    State.DEFERRED: Kind.DEFERRED,
}
_STATES = {
    AtCeiling.REFUSE: State.REFUSED,
    AtCeiling.REVIEW: State.REVIEW,
    AtCeiling.DEFER: State.DEFERRED,
}


@frozen
class Answer:
    """
    A new decision, and what makes it durable.

    Attributes:
        values: Of the ledger's row.
        accounts: In which its cost is to be reserved.
    """

    decision: Decision
    values: dict[str, Any]
    accounts: Sequence[book.Account] = field(default=())

    def reserve(self, connection: Connection, why: book.Cause) -> None:
        """Reserve what it costs; after the row is made, so that it is reserved once."""
        book.reserve(connection, self.accounts, why, beyond=self.decision.beyond)


def cause(key: Key, attempt: int, now: int) -> book.Cause:
    """Return what an entry says of its origin."""
    return book.Cause(at=now, source=key.source, event_id=key.event_id, attempt=attempt)


def recorded(
    connection: Connection, key: Key, row: Row[Any], lease: str, now: int
) -> Decision | None:
    """Return the answer that stands, or ``None`` if it is to be decided."""
    state = State(row.state)
    known: dict[str, Any] = {**key.as_dict(), "attempt": row.attempts}
    if state is State.COMPLETED:
        count_duplicate(connection, key, now)
        return Decision(kind=Kind.DEDUPLICATED, **known)
    if state is State.RESERVED:
        if row.lease == lease:
            return Decision(kind=Kind.ADMITTED, is_new=False, **known)
        if row.lease_until > now:
            return Decision(kind=Kind.IN_PROGRESS, is_new=False, until=row.lease_until, **known)
        return None
    if state not in _KINDS or (state is State.DEFERRED and row.defer_until <= now):
        return None
    standing = row.answer["standing"]
    return Decision(
        kind=_KINDS[state],
        is_new=False,
        reason=Reason.REJECTED if state is State.REJECTED else Reason(row.answer["reason"]),
        until=row.defer_until,
        standing=Standing(**standing),
        **known,
    )


def decide(
    connection: Connection,
    key: Key,
    row: Row[Any] | None,
    gate: Gate | None,
    amounts: Mapping[str, int],
    now: int,
    expires_at: int | None,
) -> Answer:
    """Look at the ceilings; write nothing but the end of an attempt that was lost."""
    attempts = 0 if row is None else row.attempts
    held = [] if row is None else held_of(row)
    if gate is None:
        return _admitted(key, attempts, held)
    if row is not None and row.state == State.RESERVED.value and gate.charge is Charge.ATTEMPT:
        # Its process died. What it has spent is not known: as much as was estimated.
        book.settle(connection, held, [amount for *_, amount in held], cause(key, attempts, now))
        held = []
    if held:  # of an earlier attempt: the event is charged once
        return _admitted(key, attempts, held)
    accounts = book.read_accounts(connection, gate.bounds, amounts, now)
    permit = None if row is None else row.permit
    blocking = [account for account in accounts if account.is_full]
    if blocking and permit != BEYOND:
        return _declined(key, row, gate, blocking, expires_at)
    held = [(each.bound.id, each.window.starts_at, each.cost) for each in accounts]
    return _admitted(key, attempts, held, accounts, beyond=bool(blocking))


def _admitted(
    key: Key,
    attempts: int,
    held: book.Held,
    accounts: Sequence[book.Account] = (),
    *,
    beyond: bool = False,
) -> Answer:
    over = [account for account in accounts if account.crosses_soft]
    decision = Decision(
        kind=Kind.ADMITTED,
        attempt=attempts + 1,
        over_soft=tuple(account.standing(after=True) for account in over),
        crossed_soft=tuple(account.standing(after=True) for account in over if not account.told),
        beyond=beyond,
        consumer=key.consumer,
        source=key.source,
        event_id=key.event_id,
    )
    values = {
        "state": State.RESERVED.value,
        "attempts": attempts + 1,
        "held": held or None,
        "defer_until": None,
    }
    return Answer(decision, values, accounts)


def _declined(
    key: Key,
    row: Row[Any] | None,
    gate: Gate,
    blocking: Sequence[book.Account],
    expires_at: int | None,
) -> Answer:
    state = _STATES[gate.at_ceiling]
    if row is not None and row.permit is not None and blocking:
        state = State.DEFERRED  # permitted: when there is room
    reason = Reason.CEILING_REACHED
    # Of several, the one that holds longest; one that never resets holds for ever.
    ends = [(each.fits_at(), each) for each in blocking]
    until, binding = max(ends, key=lambda end: (end[0] is None, end[0] or 0))
    too_small = [each for each in blocking if each.is_too_small]
    if too_small:
        # It would wait for ever.
        state, reason, binding = State.REFUSED, Reason.EXCEEDS_CEILING, too_small[0]
    elif state is State.DEFERRED and until is None:
        state = State.REVIEW if gate.at_ceiling is AtCeiling.REVIEW else State.REFUSED
    elif state is State.DEFERRED and expires_at is not None and (until or 0) > expires_at:
        state, reason = State.REFUSED, Reason.RETENTION
    standing = binding.standing()
    before = None if row is None else row.answer
    is_new = before is None or (before["state"], before["standing"]["window"]) != (
        state.value,
        standing.window,
    )
    decision = Decision(
        kind=_KINDS[state],
        is_new=is_new,
        attempt=0 if row is None else row.attempts,
        reason=reason,
        until=until if state is State.DEFERRED else None,
        standing=standing,
        consumer=key.consumer,
        source=key.source,
        event_id=key.event_id,
    )
    values: dict[str, Any] = {
        "state": state.value,
        "lease": None,
        "lease_until": None,
        "held": None,
        "defer_until": decision.until,
        "answer": {
            "state": state.value,
            "reason": reason.value,
            "standing": asdict(standing),
        },
    }
    counted = {State.REFUSED: "refusals", State.DEFERRED: "deferrals"}.get(state)
    if is_new and counted:
        values[counted] = 1 if row is None else getattr(row, counted) + 1
    return Answer(decision, values)
