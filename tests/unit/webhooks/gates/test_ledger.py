"""Reserve, settle, release; and answers that stand."""

from __future__ import annotations

import pytest

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.gates import Ceiling, GatePolicy, Kind, Reason
from gunicorn_admission.webhooks.gates.gate import load_gate
from gunicorn_admission.webhooks.gates.standings import standings, tallies
from gunicorn_admission.webhooks.store import Store
from tests.gating import DAY, HOUR, LEASE, MONDAY, SECOND, Gated

NEW_YORK = "America/New_York"


def policy(hard: int = 2, **options: object) -> GatePolicy:
    return GatePolicy([Ceiling(hard, "requests", per="day", zone=NEW_YORK)], **options)  # type: ignore[arg-type]


def used(gated: Gated) -> list[tuple[str, int, int]]:
    with gated.store.read() as connection:
        gate = load_gate(connection, gated.consumer)
        assert gate is not None
        return [
            (each.unit, each.reserved, each.settled)
            for each in standings(connection, gate, gated.now)
        ]


def clean(gated: Gated) -> bool:
    found = gated.audit()
    assert not found, found
    return True


def test_an_event_is_admitted_once_and_then_a_duplicate(any_store: Store) -> None:
    gated = Gated(any_store, policy())
    first = gated.admit("evt_1")
    assert (first.kind, first.attempt, first.is_new) == (Kind.ADMITTED, 1, True)
    assert used(gated) == [("requests", 1, 0)]
    other = gated.admit("evt_1")
    assert (other.kind, other.is_new, other.until) == (Kind.IN_PROGRESS, False, MONDAY + LEASE)
    assert gated.complete("evt_1")
    assert used(gated) == [("requests", 0, 1)]
    assert gated.admit("evt_1").kind is Kind.DEDUPLICATED
    assert not gated.complete("evt_1")  # once
    assert used(gated) == [("requests", 0, 1)] and clean(gated)


def test_the_same_attempt_may_ask_again(any_store: Store) -> None:
    gated = Gated(any_store, policy())
    key = {"consumer": "usage", "source": "stripe", "event_id": "evt_1"}

    def ask() -> tuple[Kind, bool]:
        decision = any_store.write(
            lambda connection: gated.ledger.admit(
                connection, lease="mine", lease_until=MONDAY + LEASE, now=MONDAY, **key
            )
        )
        return decision.kind, decision.is_new

    assert ask() == (Kind.ADMITTED, True)
    assert ask() == (Kind.ADMITTED, False)
    assert used(gated) == [("requests", 1, 0)]


def test_without_a_ceiling_the_ledger_still_deduplicates(any_store: Store) -> None:
    gated = Gated(any_store, None)
    assert gated.admit("evt_1").kind is Kind.ADMITTED
    assert gated.admit("evt_1").kind is Kind.IN_PROGRESS
    assert gated.fail("evt_1")
    assert gated.admit("evt_1").attempt == 2
    assert gated.complete("evt_1", actual={"tokens": 5})
    assert gated.admit("evt_1").kind is Kind.DEDUPLICATED


def test_a_refusal_names_everything_and_stands(any_store: Store) -> None:
    gated = Gated(any_store, policy(2))
    assert [gated.done("a"), gated.done("b")] == ["admitted"] * 2
    told = gated.admit("c")
    assert (told.kind, told.reason, told.is_new) == (Kind.REFUSED, Reason.CEILING_REACHED, True)
    assert (told.consumer, told.source, told.event_id) == ("usage", "stripe", "c")
    assert told.ceiling == "2 requests per day America/New_York"
    assert (told.used, told.hard, told.unit, told.window) == (2, 2, "requests", "2026-11-30")
    assert told.resets_at == MONDAY + 17 * HOUR  # 05:00 UTC
    assert told.until is None and told.attempt == 0
    again = gated.admit("c")
    assert (again.kind, again.is_new, again.standing) == (Kind.REFUSED, False, told.standing)
    gated.now += DAY  # a new window does not undo what was refused
    assert (gated.admit("c").kind, gated.admit("c").is_new) == (Kind.REFUSED, False)
    assert gated.done("a") == "deduplicated"
    assert clean(gated)


def test_deferred_over_several_windows_uses_no_attempt(any_store: Store) -> None:
    gated = Gated(any_store, policy(1, at_ceiling="defer"))
    assert gated.done("a") == "admitted"
    for day in range(3):
        told = gated.admit("z")
        assert (told.kind, told.is_new, told.attempt) == (Kind.DEFERRED, True, 0)
        assert told.until == told.resets_at == MONDAY + day * DAY + 17 * HOUR
        assert not gated.admit("z").is_new
        gated.now += DAY
        gated.done(f"early {day}")
    gated.now += DAY
    told = gated.admit("z")
    assert (told.kind, told.attempt) == (Kind.ADMITTED, 1)
    with any_store.read() as connection:
        (tally,) = tallies(connection, "usage")
    assert (tally.deferred, tally.attempts, tally.refused) == (3, 5, 0)
    assert clean(gated)


def test_all_ceilings_or_none(any_store: Store) -> None:
    gated = Gated(
        any_store,
        GatePolicy(
            [
                Ceiling(3, "requests", per="day"),
                Ceiling(5, "requests", per="month"),
                Ceiling(100, "tokens", per="day"),
            ],
            cost={"tokens": 30},
        ),
    )
    assert [gated.done(name) for name in "abc"] == ["admitted"] * 3
    told = gated.admit("d")
    assert told.ceiling == "3 requests per day UTC"  # the month has room, the tokens have not
    assert used(gated) == [("requests", 0, 3), ("requests", 0, 3), ("tokens", 0, 90)]
    gated.now += DAY  # to December
    assert [gated.done(name) for name in "efg"] == ["admitted"] * 3
    gated.now += DAY
    assert gated.admit("h", {"tokens": 101}).reason is Reason.EXCEEDS_CEILING
    assert [gated.done(name) for name in "ij"] == ["admitted"] * 2
    told = gated.admit("k")
    # Of those without room the one that resets last is named.
    assert (told.ceiling, told.window) == ("5 requests per month UTC", "2026-12")
    assert clean(gated)


def test_a_cost_beyond_the_ceiling_never_waits(any_store: Store) -> None:
    gated = Gated(any_store, policy(5, at_ceiling="defer"))
    told = gated.admit("big", {"requests": 6})
    assert (told.kind, told.reason, told.until) == (Kind.REFUSED, Reason.EXCEEDS_CEILING, None)
    assert gated.admit("fits", {"requests": 5}).kind is Kind.ADMITTED


def test_what_is_thrown_away_before_the_reset_is_refused(any_store: Store) -> None:
    gated = Gated(any_store, policy(0, at_ceiling="defer"))
    reset = MONDAY + 17 * HOUR
    # A ceiling of nothing: whatever costs something exceeds it.
    assert gated.admit("a", expires_at=reset).reason is Reason.EXCEEDS_CEILING
    gated.configure(policy(1, at_ceiling="defer"))
    gated.done("b")
    assert gated.admit("c", expires_at=reset).kind is Kind.DEFERRED
    told = gated.admit("d", expires_at=reset - 1)
    assert (told.kind, told.reason, told.until) == (Kind.REFUSED, Reason.RETENTION, None)


def test_charge_per_event_keeps_one_reservation_over_its_retries(any_store: Store) -> None:
    gated = Gated(any_store, policy(2))
    for attempt in range(1, 6):
        assert gated.admit("x").attempt == attempt
        assert gated.fail("x")
    assert used(gated) == [("requests", 1, 0)]
    assert gated.done("y") == "admitted"  # it is not starved by the retries of x
    assert gated.bury("x")
    assert used(gated) == [("requests", 0, 1)]
    assert gated.done("z") == "admitted"
    told = gated.admit("x")  # a redrive, at the full ceiling
    assert told.kind is Kind.REFUSED and clean(gated)


def test_charge_per_attempt_settles_each(any_store: Store) -> None:
    gated = Gated(any_store, policy(3, charge="attempt"))
    for _ in range(3):
        assert gated.admit("x").kind is Kind.ADMITTED
        assert gated.fail("x")
    assert used(gated) == [("requests", 0, 3)]
    told = [gated.admit("x") for _ in range(3)]
    assert [each.kind for each in told] == [Kind.REFUSED] * 3
    assert [each.is_new for each in told] == [True, False, False]
    assert [each.attempt for each in told] == [3] * 3 and clean(gated)


def test_a_lost_attempt_is_charged_at_the_estimate(any_store: Store) -> None:
    gated = Gated(any_store, policy(3, charge="attempt"))
    gated.admit("x")
    gated.now += LEASE + 1
    assert gated.admit("x").attempt == 2
    assert used(gated) == [("requests", 1, 1)] and clean(gated)


def test_actual_cost_may_overrun_and_then_refuses(any_store: Store) -> None:
    tokens = GatePolicy([Ceiling(100, "tokens")], cost=40, charge="actual")
    gated = Gated(any_store, tokens)
    gated.admit("a")
    gated.admit("b")
    assert gated.complete("a", actual={"tokens": 70})
    assert used(gated) == [("tokens", 40, 70)]
    assert gated.complete("b")  # not known: the estimate
    assert used(gated) == [("tokens", 0, 110)]
    told = gated.admit("c")
    assert (told.kind, told.used, told.hard) == (Kind.REFUSED, 110, 100)
    assert gated.admit("free", {"tokens": 0}).kind is Kind.ADMITTED
    assert gated.complete("free", actual={"tokens": 5})  # settled though nothing was reserved
    assert used(gated) == [("tokens", 0, 115)] and clean(gated)


def test_actual_cost_of_a_failed_attempt(any_store: Store) -> None:
    gated = Gated(any_store, GatePolicy([Ceiling(100, "tokens")], cost=40, charge="actual"))
    gated.admit("a")
    gated.fail("a")  # cost nothing: the reservation stays
    assert used(gated) == [("tokens", 40, 0)]
    gated.admit("a")
    gated.fail("a", actual={"tokens": 15})
    assert used(gated) == [("tokens", 0, 15)]
    gated.admit("a")
    assert used(gated) == [("tokens", 40, 15)]
    lease = gated.leases["a"]
    assert gated.bury("a", lease=lease, actual={"tokens": 10})
    assert used(gated) == [("tokens", 0, 25)] and clean(gated)


def test_after_a_crash_the_same_reservation_is_used(any_store: Store) -> None:
    gated = Gated(any_store, policy(1))
    gated.admit("x")
    zombie = gated.leases["x"]
    assert gated.admit("x").kind is Kind.IN_PROGRESS
    gated.now += LEASE
    assert clean(gated)  # to the very end of the lease it is held
    gated.now += 1
    assert [each.fault.value for each in gated.audit()] == ["leaked"]
    assert gated.admit("x").attempt == 2  # though the ceiling is full
    assert used(gated) == [("requests", 1, 0)]
    assert not gated.complete("x", zombie) and not gated.fail("x", zombie)
    assert not gated.bury("x", lease=zombie) and not gated.skip("x", lease=zombie)
    assert gated.complete("x")
    assert used(gated) == [("requests", 0, 1)] and clean(gated)


def test_extend_is_fenced(any_store: Store) -> None:
    gated = Gated(any_store, policy())
    gated.admit("x")

    def extend(lease: str, until: int) -> bool:
        return any_store.write(
            lambda connection: gated.ledger.extend(
                connection, consumer="usage", source="stripe", event_id="x", lease=lease,
                lease_until=until,
            )
        )  # fmt: skip

    assert extend(gated.leases["x"], MONDAY + 2 * LEASE)
    assert not extend("another", MONDAY + 3 * LEASE)
    gated.now += LEASE + 1
    assert gated.admit("x").until == MONDAY + 2 * LEASE
    gated.complete("x")
    assert not extend(gated.leases["x"], MONDAY + 9 * LEASE)


def test_late_completion_of_a_lease_that_nobody_took(any_store: Store) -> None:
    gated = Gated(any_store, policy())
    gated.admit("x")
    gated.now += 10 * LEASE
    assert gated.complete("x") and clean(gated)


def test_spend_belongs_to_the_window_of_its_reservation(any_store: Store) -> None:
    gated = Gated(any_store, policy(2))
    gated.admit("x")
    gated.now += DAY
    assert gated.complete("x")
    assert used(gated) == [("requests", 0, 0)]
    assert [gated.done(name) for name in "abc"] == ["admitted", "admitted", "refused"]
    assert clean(gated)


def test_a_clock_that_goes_back_reopens_no_window(any_store: Store) -> None:
    gated = Gated(any_store, policy(1))
    gated.now += DAY
    assert gated.done("a") == "admitted"
    gated.now -= DAY  # yesterday has room, and is over
    told = gated.admit("b")
    assert (told.kind, told.window) == (Kind.REFUSED, "2026-12-01")


def test_a_clock_that_goes_back_reopens_no_rolling_window(any_store: Store) -> None:
    gated = Gated(any_store, GatePolicy([Ceiling(1, "requests", per="1h")]))
    assert gated.done("a") == "admitted"
    gated.now -= 2 * HOUR
    assert gated.done("b") == "refused"


def test_rolling_gives_room_back_slice_by_slice(any_store: Store) -> None:
    gated = Gated(any_store, GatePolicy([Ceiling(2, "requests", per="1h")], at_ceiling="defer"))
    gated.done("a")
    gated.now += 30 * 60 * SECOND
    gated.done("b")
    told = gated.admit("c")
    assert told.kind is Kind.DEFERRED and told.until is not None
    # One hour after the last microsecond of the minute in which a was admitted.
    assert told.until == MONDAY + HOUR + 60 * SECOND - 1
    gated.now = told.until - 1
    assert gated.admit("d").kind is Kind.DEFERRED
    gated.now = told.until
    assert gated.done("c") == "admitted"
    assert gated.admit("e").until == told.until + 30 * 60 * SECOND


def test_total(any_store: Store) -> None:
    gated = Gated(any_store, GatePolicy([Ceiling(1, "requests", per="total")]))
    gated.done("a")
    gated.now += 1000 * DAY
    told = gated.admit("b")
    assert (told.kind, told.resets_at, told.window) == (Kind.REFUSED, None, "total")


def test_soft_is_told_once_in_a_window(any_store: Store) -> None:
    gated = Gated(any_store, GatePolicy([Ceiling(5, "requests", soft=2)]))
    told = [gated.admit(name) for name in "abcd"]
    assert [len(each.over_soft) for each in told] == [0, 0, 1, 1]
    assert [len(each.crossed_soft) for each in told] == [0, 0, 1, 0]
    (standing,) = told[2].crossed_soft
    assert (standing.used, standing.soft, standing.window) == (3, 2, "2026-11-30")
    gated.configure(GatePolicy([Ceiling(9, "requests", soft=4)]))
    assert len(gated.admit("e").crossed_soft) == 1  # another threshold
    gated.now += DAY
    assert [len(gated.admit(name).crossed_soft) for name in "fghijkl"] == [0, 0, 0, 0, 1, 0, 0]


def test_only_soft_refuses_nothing(any_store: Store) -> None:
    gated = Gated(any_store, GatePolicy([Ceiling(None, "requests", soft=1, per="1h")]))
    told = [gated.admit(name) for name in "abc"]
    assert [each.kind for each in told] == [Kind.ADMITTED] * 3
    assert [len(each.crossed_soft) for each in told] == [0, 1, 0]


def test_skipped_is_recorded_and_may_be_replayed(any_store: Store) -> None:
    gated = Gated(any_store, policy())
    assert gated.skip("a")
    assert gated.skip("a")
    assert gated.admit("a").kind is Kind.ADMITTED
    assert not gated.skip("a")
    assert gated.skip("a", lease=gated.leases["a"])
    assert used(gated) == [("requests", 0, 0)]
    gated.done("b")
    assert not gated.skip("b") and not gated.bury("b")
    assert clean(gated)


def test_only_whole_numbers_are_spent(sqlite_store_url: str) -> None:
    with Store(sqlite_store_url) as store:
        gated = Gated(store, policy(9, charge="actual"))
        for bad in (float("nan"), 1.0, -1, True, "1", None, 10**16):
            with pytest.raises(ConfigError, match="whole number"):
                gated.admit("a", {"requests": bad})  # type: ignore[dict-item]
        assert gated.admit("a").is_new
        for bad in (float("nan"), 1.0, -1, True, "1", None, 10**16):
            with pytest.raises(ConfigError, match="actual"):
                gated.complete("a", actual={"requests": bad})
        assert gated.complete("a") and clean(gated)


def test_a_unit_without_a_cost_is_an_error_and_not_free(any_store: Store) -> None:
    gated = Gated(any_store, GatePolicy([Ceiling(5, "tokens")]))
    with pytest.raises(ConfigError, match=r"5 tokens per day UTC"):
        gated.admit("a")
    assert gated.admit("a", {"tokens": 1, "words": 7}).kind is Kind.ADMITTED
