"""The bound that workers share: never passed, given back, fair."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gunicorn_admission.core.policy import MILLISECOND
from gunicorn_admission.scoreboard import NodeSlots, Page, is_starved
from gunicorn_admission.scoreboard.page import Column
from gunicorn_admission.scoreboard.slots import _Bound

NOW = 10**12


def workers(
    count: int, limit: int | None, caps: dict[str, tuple[int, int]] | None = None
) -> list[NodeSlots]:
    """So many living workers on one page."""
    page = Page(used=count)
    for row in range(count):
        page.set(Column.PID, row, 1000 + row)
    return [NodeSlots(page, row, limit, caps or {}) for row in range(count)]


def test_the_bound_holds_for_all_together() -> None:
    one, two = workers(2, 3)
    assert [one.take("/a", NOW), two.take("/b", NOW), one.take("/a", NOW)] == [True] * 3
    assert not two.take("/a", NOW)
    assert not one.has_room("/a", NOW)
    one.give("/a")
    assert two.has_room("/a", NOW)
    assert two.take("/a", NOW)
    assert one.total() == two.total() == 3
    assert one.bound() == 3


def test_a_class_has_a_bound_of_its_own_inside_that_of_all() -> None:
    one, two = workers(2, 3, {"/db": (1, 1)})
    assert one.take("/db", NOW)
    assert not two.take("/db", NOW)
    assert two.total() == 1  # what it took of the bound of all is given back
    assert two.take("/a", NOW)
    assert two.take("/a", NOW)
    one.give("/db")
    assert two.take("/a", NOW) and not two.take("/db", NOW)
    two.give("/a")
    assert two.take("/db", NOW)


def test_a_class_may_be_bounded_without_a_bound_over_all() -> None:
    one, two = workers(2, None, {"/db": (1, 1)})
    assert all(one.take("/a", NOW) for _ in range(99))
    assert one.take("/db", NOW)
    assert not two.take("/db", NOW)
    assert (one.bound(), one.total()) == (0, 0)


def test_what_is_not_refused_is_counted_all_the_same() -> None:
    one, two = workers(2, 1)
    one.force("/a")
    one.force("/a")
    assert one.total() == 2
    one.give("/a")
    assert not two.take("/a", NOW)
    one.give("/a")
    assert two.take("/a", NOW)


def test_a_request_moves_to_another_class_if_that_has_room_or_it_must() -> None:
    one, two = workers(2, 9, {"/db": (1, 1), "/gpu": (1, 2)})
    assert one.take("/a", NOW)
    assert one.move("/a", "/db", NOW, force=False)
    assert not two.take("/db", NOW)
    assert two.take("/a", NOW)
    assert not two.move("/a", "/db", NOW, force=False)
    assert two.move("/a", "/db", NOW, force=True)
    assert two.move("/db", "/gpu", NOW, force=False)
    assert not one.take("/gpu", NOW)
    assert one.move("/x", "/y", NOW, force=False)  # neither has a bound
    one.give("/db")
    two.give("/gpu")
    assert one.total() == 0
    assert two.take("/db", NOW) and one.take("/gpu", NOW)


def test_the_last_slots_are_left_to_those_with_less_who_asked_in_vain() -> None:
    busy, idle = workers(2, 4)
    assert all(busy.take("/a", NOW) for _ in range(4))
    assert not idle.take("/a", NOW)
    busy.give("/a")
    assert not busy.take("/a", NOW + MILLISECOND)  # it has its half and more
    assert idle.take("/a", NOW + 10 * MILLISECOND)
    busy.give("/a")
    assert busy.take("/a", NOW + 11 * MILLISECOND)  # served, so nobody asks any more
    assert not idle.has_room("/a", NOW + 12 * MILLISECOND)  # asked by one who waits
    busy.give("/a")
    assert not busy.take("/a", NOW + 13 * MILLISECOND)
    assert idle.take("/a", NOW + 20 * MILLISECOND)


def test_a_slot_is_not_kept_for_one_that_asks_no_more() -> None:
    busy, idle = workers(2, 2)
    assert busy.take("/a", NOW) and busy.take("/a", NOW)
    assert not idle.take("/a", NOW)
    busy.give("/a")
    assert not busy.take("/a", NOW + 24 * MILLISECOND)
    assert busy.take("/a", NOW + 26 * MILLISECOND)


def test_whoever_has_its_part_is_owed_nothing() -> None:
    one, two = workers(2, 2)
    assert one.take("/a", NOW) and two.take("/a", NOW)
    assert not one.take("/a", NOW)
    two.give("/a")
    assert two.take("/a", NOW + MILLISECOND)


def test_of_two_that_see_one_another_neither_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second raises its count between the first one's store and its look."""
    one, two = workers(2, 1)
    seen: list[bool] = []
    look = _Bound.total

    def total(self: _Bound) -> int:
        if not seen:
            seen.append(False)
            seen.append(two.take("/a", NOW))
        return look(self)

    monkeypatch.setattr(_Bound, "total", total)
    took = one.take("/a", NOW)
    assert seen == [False, False]
    assert took + sum(seen) == one.total() <= 1


@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["take", "give", "move"]),
                       st.sampled_from(["/a", "/db"])), max_size=60),
)  # fmt: skip
def test_counts_are_those_of_a_naive_count(limit: int, steps: list[tuple[int, str, str]]) -> None:
    slots = workers(4, limit, {"/db": (2, 1)})
    held: list[list[str]] = [[] for _ in slots]
    for worker, action, name in steps:
        mine, now = held[worker], NOW
        if action == "take":
            if slots[worker].take(name, now):
                mine.append(name)
        elif mine and action == "give":
            slots[worker].give(mine.pop())
        elif mine and slots[worker].move(mine[-1], name, now, force=False):
            mine[-1] = name
        everything = [name for one in held for name in one]
        assert len(everything) <= limit
        assert everything.count("/db") <= 2
        assert slots[0].total() == len(everything)


@pytest.mark.parametrize(
    ("limit", "stuck", "starved"),
    [(0, [9], False), (16, [], False), (16, [0, 0], False), (16, [7, 6], False),
     (16, [7, 7], True), (4, [2], False), (4, [3], True), (1, [1], True), (1, [0], False)],
)  # fmt: skip
def test_starved_is_when_an_eighth_or_less_is_left(
    limit: int, stuck: list[int], starved: bool
) -> None:
    assert is_starved(limit, stuck) is starved
