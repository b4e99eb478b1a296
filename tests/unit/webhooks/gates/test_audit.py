"""What an audit finds, where something was made wrong on purpose."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete, insert, update

from gunicorn_admission.webhooks.gates import Ceiling, GatePolicy
from gunicorn_admission.webhooks.gates.audit import repair
from gunicorn_admission.webhooks.gates.gate import load_gate
from gunicorn_admission.webhooks.gates.standings import standings
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import entries, ledger, subscriptions, windows
from tests.gating import HOUR, LEASE, MONDAY, SECOND, Gated


@pytest.fixture
def gated(any_store: Store) -> Gated:
    made = Gated(any_store, GatePolicy([Ceiling(9, "requests"), Ceiling(9, "a", per="1h")],
                                       cost={"a": 2}))  # fmt: skip
    made.done("done")
    made.admit("open")
    assert not made.audit()
    return made


def break_it(gated: Gated, statement: Any) -> list[tuple[str, str]]:
    gated.store.write(lambda connection: connection.execute(statement))
    return [(each.fault.value, each.subject) for each in gated.audit()]


def test_a_counter_that_drifted(gated: Gated) -> None:
    found = break_it(gated, update(windows).values(settled=windows.c.settled + 1))
    assert ("drift", "9 requests per day UTC, 2026-11-30") in found
    assert [fault for fault, _ in found] == ["drift"] * 2
    fixed = gated.store.write(
        lambda connection: repair(connection, gated.consumer, now=gated.now, actor="ann")
    )
    assert fixed == 2 and not gated.audit()


def test_a_window_that_is_gone(gated: Gated) -> None:
    found = break_it(gated, delete(windows))
    assert {fault for fault, _ in found} == {"drift"}


def test_entries_that_are_gone(gated: Gated) -> None:
    faults = {fault for fault, _ in break_it(gated, delete(entries))}
    assert faults == {"drift", "mismatch"}


def test_a_reservation_that_is_forgotten(gated: Gated) -> None:
    found = break_it(gated, update(ledger).values(held=None))
    assert found == [("mismatch", "stripe/open")]


def test_a_reservation_whose_attempt_is_gone(gated: Gated) -> None:
    gated.now += LEASE + SECOND
    assert [each.fault.value for each in gated.audit()] == ["leaked"]
    assert not gated.audit(grace_us=2 * SECOND)
    assert not gated.audit(consumer="another")
    assert gated.audit()[0].amounts == {"requests": 1, "a": 2}


def test_a_reservation_for_an_attempt_that_never_comes(gated: Gated) -> None:
    gated.fail("open")
    assert not gated.audit()
    row = {
        "name": "usage", "mode": "active", "filter": {}, "start_seq": 0, "retry": {},
        "retention_us": 1, "lease_us": 1, "created_at": 1, "mode_since": 1,
    }  # fmt: skip
    found = break_it(gated, insert(subscriptions).values(**row))  # which has no such delivery
    assert found == [("orphaned", "stripe/open")]


def test_when_there_is_room_again(any_store: Store) -> None:
    gated = Gated(any_store, GatePolicy([Ceiling(9, "a", per="1h")], cost=1))

    def resets_at() -> int | None:
        with any_store.read() as connection:
            gate = load_gate(connection, gated.consumer)
            assert gate is not None
            (standing,) = standings(connection, gate, gated.now)
            return standing.resets_at

    assert resets_at() is None
    gated.done("x")
    gated.now += 120 * SECOND
    gated.done("y")
    assert resets_at() == MONDAY + HOUR + 60 * SECOND - 1
