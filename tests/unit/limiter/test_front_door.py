"""What an accept loop asks before there is a ticket."""

from __future__ import annotations

import pytest

from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.core.types import Priority, Reason
from tests.callers import Room, room
from tests.driving import MS, S


def overloaded(limiter: Room) -> None:
    """Raise the flag, as a queue that stands would."""
    limiter._controller.congestion.overloaded = True
    limiter._controller.congestion.rolls_at_ns = limiter._clock() + S


def test_it_is_full_when_an_arrival_would_have_to_wait() -> None:
    limiter, _ = room(2)
    assert not limiter.full
    first = limiter.acquire()
    assert not limiter.full
    second = limiter.acquire()
    assert limiter.full
    caller = limiter.waiter()
    first.release()
    assert limiter.full
    caller.result().release()
    assert not limiter.full
    second.release()


def test_it_is_full_while_it_is_paused() -> None:
    limiter, _ = room(2)
    limiter.pause()
    assert limiter.full
    assert limiter.crowded


def test_it_is_crowded_when_some_class_has_no_room() -> None:
    limiter, _ = room(4)
    limiter._controller.shares.define(PartitionPolicy(name="a", cap=1))
    permits = [limiter.acquire(partition="a")]
    assert not limiter.crowded  # with half of the slots free that is no concern
    permits.append(limiter.acquire(partition="b"))
    assert limiter.crowded
    permits.pop(0).release()
    permits.append(limiter.acquire(partition="b"))
    assert not limiter.crowded
    permits += [limiter.acquire(partition="c"), limiter.acquire(partition="c")]
    assert limiter.crowded
    for permit in permits:
        permit.release()


@pytest.mark.parametrize("priority", Priority)
def test_nobody_is_turned_away_unseen_without_overload(priority: Priority) -> None:
    limiter, clock = room()
    held = limiter.acquire()
    assert limiter.turn_away("a", priority, clock()) is None
    assert limiter.statistics().arrivals == 1
    held.release()


def test_under_overload_low_is_and_default_behind_two() -> None:
    limiter, clock = room()
    held = limiter.acquire()
    overloaded(limiter)
    answer = limiter.turn_away("a", Priority.LOW, clock())
    assert answer is not None
    assert answer[0] is Reason.OVERLOADED
    assert S // 2 <= answer[1] <= 3 * S // 2
    assert limiter.turn_away("a", Priority.DEFAULT, clock()) is None
    callers = [limiter.waiter(timeout=5), limiter.waiter(timeout=5)]
    overloaded(limiter)
    assert limiter.turn_away("a", Priority.DEFAULT, clock()) is not None
    assert limiter.turn_away("a", Priority.HIGH, clock()) is None
    seen = limiter.statistics()
    assert seen.shed == {("low", "overloaded"): 1, ("default", "overloaded"): 1}
    assert seen.arrivals == seen.granted + seen.shed_total + seen.waiting
    assert seen.partitions["a"].shed == 2
    limiter.close()
    for caller in callers:
        with pytest.raises(Exception, match="stopping"):
            caller.result()
    held.release()


@pytest.mark.parametrize("what", ["slot", "roll", "monitor", "subscription", "expired", "closed"])
def test_whatever_needs_a_closer_look_gets_one(what: str) -> None:
    limiter, clock = room(max_wait_ns=100 * MS)
    limiter._controller.shares.define(PartitionPolicy(name="shop", max_refusals=8))
    held = limiter.acquire()
    overloaded(limiter)
    assert limiter.turn_away("a", Priority.LOW, clock()) is not None
    name = "a"
    if what == "slot":
        held.release()
    elif what == "roll":
        clock._now_ns += S
    elif what == "monitor":
        limiter.set_mode("monitor")
    elif what == "subscription":
        name = "shop"
    elif what == "expired":
        limiter._controller.expires_at_ns = clock()
    else:
        limiter.close()
    assert limiter.turn_away(name, Priority.LOW, clock()) is None
    held.release()
