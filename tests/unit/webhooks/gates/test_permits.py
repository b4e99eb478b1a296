"""Review, and what an operator decides about single events."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from gunicorn_admission.webhooks.gates import Ceiling, GatePolicy, Kind, Reason
from gunicorn_admission.webhooks.gates.errors import LedgerConflict
from gunicorn_admission.webhooks.gates.permits import approve, reject, release
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import audit, entries
from tests.gating import DAY, Gated


def policy(hard: int, at_ceiling: str) -> GatePolicy:
    return GatePolicy([Ceiling(hard, "requests")], at_ceiling=at_ceiling)


def test_review_waits_for_a_person(any_store: Store) -> None:
    gated = Gated(any_store, policy(1, "review"))
    gated.done("a")
    told = gated.admit("b")
    assert (told.kind, told.reason, told.is_new) == (Kind.REVIEW, Reason.CEILING_REACHED, True)
    gated.now += DAY
    assert (gated.admit("b").kind, gated.admit("b").is_new) == (Kind.REVIEW, False)
    gated.permit(approve, "b")
    assert gated.done("b") == "admitted"


def test_a_rejected_event_is_refused_for_good(any_store: Store) -> None:
    gated = Gated(any_store, policy(1, "review"))
    gated.done("a")
    gated.admit("b")
    gated.permit(reject, "b")
    gated.now += DAY
    told = gated.admit("b")
    assert (told.kind, told.reason, told.is_new) == (Kind.REFUSED, Reason.REJECTED, False)
    gated.permit(release, "b")
    assert gated.done("b") == "admitted"


@pytest.mark.parametrize("at_ceiling", ["refuse", "review"])
def test_permitted_waits_for_room_and_passes_no_ceiling(any_store: Store, at_ceiling: str) -> None:
    gated = Gated(any_store, policy(1, at_ceiling))
    gated.done("a")
    gated.admit("b")
    gated.permit(release if at_ceiling == "refuse" else approve, "b")
    told = gated.admit("b")
    assert (told.kind, told.is_new, told.used) == (Kind.DEFERRED, True, 1)
    assert told.until == told.resets_at
    gated.now += DAY
    assert gated.done("b") == "admitted"


def test_beyond_passes_the_ceiling_and_says_so(any_store: Store) -> None:
    gated = Gated(any_store, policy(1, "refuse"))
    gated.done("a")
    gated.admit("b")
    gated.permit(release, "b", beyond=True)
    told = gated.admit("b")
    assert (told.kind, told.beyond) == (Kind.ADMITTED, True)
    gated.complete("b")
    assert gated.admit("c").used == 2
    with any_store.read() as connection:
        kinds = list(connection.scalars(select(entries.c.kind).order_by(entries.c.id)))
        trail = connection.execute(select(audit).where(audit.c.action == "gate.release")).one()
    assert kinds == ["reserve", "settle", "beyond", "settle"]
    assert (trail.actor, trail.detail["beyond"], trail.detail["event"]) == ("ann", True, "stripe/b")
    assert not gated.audit()


def test_what_never_fits_is_refused_again_and_that_is_new(any_store: Store) -> None:
    gated = Gated(any_store, policy(1, "refuse"))
    gated.admit("big", {"requests": 5})
    gated.permit(release, "big")
    told = gated.admit("big", {"requests": 5})
    assert (told.kind, told.reason, told.is_new) == (Kind.REFUSED, Reason.EXCEEDS_CEILING, True)
    gated.permit(release, "big", beyond=True)
    assert gated.admit("big", {"requests": 5}).kind is Kind.ADMITTED


def test_a_total_that_is_full_keeps_refusing_what_was_released(any_store: Store) -> None:
    gated = Gated(any_store, GatePolicy([Ceiling(1, "requests", per="total")]))
    gated.done("a")
    gated.admit("b")
    gated.permit(release, "b")
    told = gated.admit("b")
    assert (told.kind, told.is_new) == (Kind.REFUSED, True)


def test_an_approval_of_what_is_not_in_review(any_store: Store) -> None:
    gated = Gated(any_store, policy(1, "refuse"))
    gated.done("a")
    gated.admit("b")
    for verb, event, says in (
        (approve, "a", "stripe/a at usage is completed. Hint: its effect is done"),
        (approve, "b", "is refused. Hint: release it"),
        (reject, "nope", "has no record. Hint: write it as source/event_id"),
        (release, "a", "is completed"),
    ):
        with pytest.raises(LedgerConflict) as caught:
            gated.permit(verb, event)
        assert says in str(caught.value)


def test_what_is_given_back_wakes_the_one_that_waited_longest(any_store: Store) -> None:
    gated = Gated(any_store, policy(1, "defer"))
    gated.admit("a")
    gated.admit("b")
    gated.now += 1
    gated.admit("c")
    gated.fail("a")
    gated.bury("a")
    assert gated.admit("c").kind is Kind.DEFERRED
    assert gated.done("b") == "admitted"
