"""Who waits, and who is next."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gunicorn_admission.core.partition import Partition
from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Priority
from gunicorn_admission.core.waitlist import Waitlist
from tests.driving import DEFAULT, HIGH, LOW


def group(name: str = "a", *, retries: bool = True) -> Partition:
    return Partition(PartitionPolicy(name=name, retries=retries), 8)


def always(_: Partition) -> bool:
    return True


def in_order(_: Ticket) -> bool:
    return False


def turned(_: Ticket) -> bool:
    return True


def drained(
    waitlist: Waitlist,
    usable: Callable[[Partition], bool] = always,
    newest_first: Callable[[Ticket], bool] = in_order,
) -> list[Ticket]:
    served = []
    while (ticket := waitlist.next(usable, newest_first)) is not None:
        waitlist.remove(ticket)
        served.append(ticket)
    return served


def queued(*priorities: Priority, partition: Partition | None = None) -> list[Ticket]:
    partition = partition or group()
    return [Ticket(partition, priority, 1) for priority in priorities]


def listing(*tickets: Ticket) -> Waitlist:
    waitlist = Waitlist()
    for ticket in tickets:
        waitlist.add(ticket)
    return waitlist


def test_an_empty_list_serves_nobody() -> None:
    waitlist = Waitlist()
    assert waitlist.next(always, in_order) is None
    assert waitlist.victim(HIGH) is None
    assert len(waitlist) == 0
    assert list(waitlist) == []


def test_priority_goes_first_and_arrival_decides_inside_one() -> None:
    low, default, high, later_default, later_high = queued(LOW, DEFAULT, HIGH, DEFAULT, HIGH)
    waitlist = listing(low, default, high, later_default, later_high)
    assert drained(waitlist) == [high, later_high, default, later_default, low]


def test_a_turned_order_is_newest_first_inside_each_priority() -> None:
    first, second, high, third = queued(DEFAULT, DEFAULT, HIGH, DEFAULT)
    waitlist = listing(first, second, high, third)
    assert drained(waitlist, newest_first=turned) == [high, third, second, first]


def test_each_priority_is_turned_by_its_own_oldest() -> None:
    tickets = queued(HIGH, HIGH, DEFAULT, DEFAULT)
    asked = []

    def oldest_is_default(oldest: Ticket) -> bool:
        asked.append(oldest)
        return oldest.priority is DEFAULT

    waitlist = listing(*tickets)
    served = drained(waitlist, newest_first=oldest_is_default)
    assert served == [tickets[0], tickets[1], tickets[3], tickets[2]]
    assert asked[0] is tickets[0]


def test_a_class_without_room_does_not_hold_up_the_others() -> None:
    blocked, free = group("blocked"), group("free")
    first, second = Ticket(blocked, HIGH, 1), Ticket(free, LOW, 1)
    waitlist = listing(first, second)
    assert waitlist.next(lambda p: p is free, in_order) is second
    assert waitlist.next(lambda _: False, in_order) is None


def test_a_blocked_class_is_asked_once_however_many_wait() -> None:
    blocked = group("blocked")
    waitlist = listing(*(Ticket(blocked, p, 1) for p in (HIGH, HIGH, DEFAULT, LOW)))
    asked: list[Partition] = []

    def usable(partition: Partition) -> bool:
        asked.append(partition)
        return False

    assert waitlist.next(usable, in_order) is None
    assert asked == [blocked]


def test_next_leaves_the_ticket_in_the_list() -> None:
    (ticket,) = queued(DEFAULT)
    waitlist = listing(ticket)
    assert waitlist.next(always, in_order) is ticket
    assert waitlist.next(always, in_order) is ticket
    assert len(waitlist) == 1


def test_counts_and_who_is_ahead() -> None:
    waitlist = listing(*queued(HIGH, DEFAULT, DEFAULT, LOW))
    assert [waitlist.ahead(p) for p in (HIGH, DEFAULT, LOW)] == [1, 3, 4]
    assert [waitlist.count(p) for p in (HIGH, DEFAULT, LOW)] == [1, 2, 1]
    assert len(waitlist) == 4


def test_beyond_keeps_the_newest() -> None:
    tickets = queued(DEFAULT, DEFAULT, DEFAULT, HIGH)
    waitlist = listing(*tickets)
    assert waitlist.beyond(DEFAULT, 2) == [tickets[0]]
    assert waitlist.beyond(DEFAULT, 0) == tickets[:3]
    assert waitlist.beyond(DEFAULT, 3) == waitlist.beyond(DEFAULT, 9) == []
    assert len(waitlist) == 4


def test_the_victim_is_the_oldest_of_the_lowest_priority() -> None:
    default, low, later_low = queued(DEFAULT, LOW, LOW)
    waitlist = listing(default, low, later_low)
    assert waitlist.victim(HIGH) is low
    assert waitlist.victim(DEFAULT) is low
    waitlist.remove(low)
    waitlist.remove(later_low)
    assert waitlist.victim(HIGH) is default


@pytest.mark.parametrize("priority", Priority)
def test_nobody_gives_way_to_an_equal_or_a_lower(priority: Priority) -> None:
    waitlist = listing(*queued(*[p for p in Priority if p <= priority]))
    assert waitlist.victim(priority) is None


def test_senders_that_retry_give_way_before_those_that_do_not() -> None:
    once = Ticket(group("once", retries=False), LOW, 1)
    again = Ticket(group("again"), LOW, 2)
    waitlist = listing(once, again)
    assert waitlist.victim(HIGH) is again
    waitlist.remove(again)
    assert waitlist.victim(HIGH) is once


def test_removal_from_anywhere_keeps_the_order() -> None:
    tickets = queued(*[DEFAULT] * 5)
    waitlist = listing(*tickets)
    waitlist.remove(tickets[2])
    waitlist.remove(tickets[0])
    assert list(waitlist) == drained(waitlist) == [tickets[1], tickets[3], tickets[4]]
