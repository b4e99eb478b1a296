"""What may be declared, and what is refused before it can do harm."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import insert, select

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.gates import Ceiling, GatePolicy, Kind, check_retention
from gunicorn_admission.webhooks.gates.gate import load_gate
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import audit, ceilings, subscriptions
from tests.gating import DAY, HOUR, MONDAY, Gated


def test_a_policy_reads_as_it_is_meant() -> None:
    daily = Ceiling(500, "requests", per="day", zone="America/New_York", soft=400)
    assert str(daily) == "500 requests per day America/New_York"
    assert str(Ceiling(None, "tokens", per="24h", soft=9)) == "soft 9 tokens per rolling 24h"
    assert GatePolicy([daily], cost=1) == GatePolicy([daily])
    assert GatePolicy([daily, Ceiling(1, "tokens")], cost={"tokens": 3}).cost == {
        "requests": 1, "tokens": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("make", "field", "says"),
    [
        (lambda: Ceiling(1.5, "requests"), "hard", "whole number"),  # type: ignore[arg-type]
        (lambda: Ceiling(True, "requests"), "hard", "switch"),
        (lambda: Ceiling(-1, "requests"), "hard", "whole number"),
        (lambda: Ceiling(10**18, "bytes"), "hard", "larger unit"),
        (lambda: Ceiling(None, "requests"), "hard", "soft"),
        (lambda: Ceiling(5, "requests", soft=5), "soft", "less than hard = 5"),
        (lambda: Ceiling(5, "Requests"), "unit", "lower-case"),
        (lambda: Ceiling(5, "requests", bill_source=""), "bill_source", "note"),
        (lambda: GatePolicy([500]), "ceilings", "Ceiling"),  # type: ignore[list-item]
        (lambda: GatePolicy([Ceiling(5, "a"), Ceiling(6, "a")]), "ceilings", "one ceiling of a"),
        (lambda: GatePolicy([Ceiling(5, "a"), Ceiling(6, "b")], cost=1), "cost", "units a, b"),
        (lambda: GatePolicy([Ceiling(5, "a")], charge="retry"), "charge", "event, attempt"),
        (lambda: GatePolicy([Ceiling(5, "a")], at_ceiling="drop"), "at_ceiling", "refuse, defer"),
        (
            lambda: GatePolicy([Ceiling(5, "a", per="total")], at_ceiling="defer"),
            "at_ceiling", "no end to wait for",
        ),
    ],
)  # fmt: skip
def test_what_cannot_work(make: Any, field: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        make()
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("per", "retention", "fits"),
    [
        ("day", 24 * HOUR, False),  # the day in autumn has 25
        ("day", 25 * HOUR, True),
        ("1h", HOUR, True),
        ("1h", HOUR - 1, False),
        ("month", 31 * DAY, False),
        ("month", 31 * DAY + HOUR, True),
    ],
)
def test_deferral_needs_retention(per: str, retention: int, fits: bool) -> None:
    deferring = GatePolicy([Ceiling(5, "requests", per=per)], at_ceiling="defer")
    check_retention(GatePolicy(deferring.ceilings), 0)  # who does not defer needs none
    if fits:
        check_retention(deferring, retention)
        return
    with pytest.raises(ConfigError, match=r"at_ceiling = 'defer'.*keep events at least"):
        check_retention(deferring, retention)


def subscribe(store: Store, retention_us: int) -> None:
    row = {
        "name": "usage", "mode": "active", "filter": {}, "start_seq": 0, "retry": {},
        "retention_us": retention_us, "lease_us": 1, "created_at": 1, "mode_since": 1,
    }  # fmt: skip
    store.write(lambda connection: connection.execute(insert(subscriptions).values(**row)))


def test_deferral_is_held_against_the_subscription(any_store: Store) -> None:
    subscribe(any_store, 7 * DAY)
    monthly = GatePolicy([Ceiling(5, "requests", per="month")], at_ceiling="defer")
    gated = Gated(any_store, None)
    with pytest.raises(ConfigError, match="retention 168h"):
        gated.configure(monthly)
    with any_store.read() as connection:
        assert load_gate(connection, "usage") is None
    assert gated.configure(monthly, retention_us=40 * DAY)


def daily(hard: int, **options: Any) -> GatePolicy:
    return GatePolicy([Ceiling(hard, "requests")], **options)


def test_a_change_applies_at_once_and_keeps_what_was_spent(any_store: Store) -> None:
    gated = Gated(any_store, daily(1))
    gated.done("a")
    assert gated.done("b") == "refused"
    assert gated.configure(daily(2))
    assert not gated.configure(daily(2))
    assert gated.done("c") == "admitted"
    gated.configure(daily(1))
    assert gated.admit("d").used == 2
    gated.configure(GatePolicy([Ceiling(9, "requests", per="week")]))
    assert gated.done("e") == "admitted"  # another window begins with nothing
    gated.configure(daily(2))
    assert gated.admit("f").used == 2  # and the one that returns goes on
    with any_store.read() as connection:
        spans = [(row.span, row.ended_at is None) for row in connection.execute(select(ceilings))]
        trail = list(connection.scalars(select(audit.c.detail).order_by(audit.c.id)))
    assert sorted(spans) == [("day UTC", True), ("week UTC", False)]
    assert trail[0]["before"] is None and len(trail) == 5
    assert trail[1]["before"]["ceilings"][0]["hard"] == 1
    assert trail[1]["after"]["ceilings"][0]["hard"] == 2
    assert not gated.audit()


def test_a_reservation_under_a_ceiling_that_ends_is_settled_there(any_store: Store) -> None:
    gated = Gated(any_store, daily(5))
    gated.admit("a")
    gated.admit("b")
    gated.configure(GatePolicy([]))
    assert gated.complete("a") and gated.fail("b") and gated.bury("b")
    assert gated.done("c") == "admitted" and not gated.audit()


def test_raising_a_ceiling_wakes_what_was_deferred(any_store: Store) -> None:
    gated = Gated(any_store, daily(1, at_ceiling="defer"))
    gated.done("a")
    assert [gated.admit(name).is_new for name in "bcbc"] == [True, True, False, False]
    gated.configure(daily(2, at_ceiling="defer"))
    assert gated.done("b") == "admitted"
    told = gated.admit("c")
    assert (told.kind, told.hard) == (Kind.DEFERRED, 2)
    assert not told.is_new  # in this window it was told before


def test_code_does_not_undo_an_operator_until_it_changes(any_store: Store) -> None:
    gated = Gated(any_store, None)
    assert gated.configure(daily(1), declared=True)
    gated.done("a")
    gated.configure(daily(5), actor="ann")
    assert not gated.configure(daily(1), declared=True)  # a restart
    assert gated.done("b") == "admitted"
    assert gated.configure(daily(2), declared=True)  # a release
    assert gated.done("c") == "refused"


def test_other_ledgers_learn_of_a_change(any_store: Store) -> None:
    one, two = Gated(any_store, daily(1)), Gated(any_store, None)
    two.leases = one.leases
    one.done("a")
    two._tokens = iter(["other-1", "other-2"])  # type: ignore[assignment]
    assert two.done("b") == "refused"
    one.configure(daily(2))
    assert two.done("c") == "admitted"
    assert one.now == MONDAY
