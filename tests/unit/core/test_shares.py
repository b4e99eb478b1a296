"""Held-back shares and caps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.core.shares import MAX_PARTITIONS, OTHER, Shares
from tests.driving import Driver


def shares(limit: int, *fractions: float, class_cap: int | None = None) -> Shares:
    made = Shares(limit, class_cap)
    for i, fraction in enumerate(fractions):
        made.define(PartitionPolicy(name=f"p{i}", share=fraction))
    made.rebalance(limit)
    return made


def guarantees(made: Shares) -> list[int]:
    return [partition.guarantee for partition in made]


@pytest.mark.parametrize(
    ("limit", "fractions", "expected"),
    [
        (10, [0.25], [3]),  # rounded up
        (10, [0.01], [1]),  # a small share is still a slot
        (100, [0.07], [7]),  # 0.07 * 100 is 7.000000000000001
        (100, [0.29], [29]),  # and 0.29 * 100 is 28.999999999999996
        (10, [0.3, 0.3], [3, 3]),
        (5, [0.3, 0.3], [2, 2]),  # one is left for the others
        (4, [0.3, 0.3], [1, 1]),  # rounded down: rounded up nothing would be left
        (2, [0.3, 0.3], [0, 0]),
        (1, [0.5], [0]),
        (10, [], []),
    ],
)
def test_a_share_of_a_limit_is_whole_slots(
    limit: int, fractions: list[float], expected: list[int]
) -> None:
    made = shares(limit, *fractions)
    assert guarantees(made) == expected
    assert made.held == sum(expected)


@given(
    limit=st.integers(1, 500),
    fractions=st.lists(st.integers(1, 89), min_size=1, max_size=6),
)
def test_somebody_without_a_share_can_always_run(limit: int, fractions: list[int]) -> None:
    whole = max(90, sum(fractions))
    made = shares(limit, *[0.9 * f / whole for f in fractions])
    assert 0 <= made.held < limit
    assert made.admits(made.get("nobody's"), 0)


@given(limit=st.integers(1, 200), share=st.integers(1, 89))
def test_a_share_never_shrinks_as_the_limit_grows(limit: int, share: int) -> None:
    small, large = shares(limit, share / 100), shares(limit + 1, share / 100)
    assert guarantees(small) <= guarantees(large)


def test_no_more_is_held_back_than_the_class_may_hold() -> None:
    made = Shares(10, None)
    made.define(PartitionPolicy(name="capped", share=0.5, cap=2))
    assert made.held == 2


def test_caps() -> None:
    made = Shares(10, 7)
    assert made.get("any").cap == 7
    assert made.define(PartitionPolicy(name="own", cap=9)).cap == 9
    assert made.define(PartitionPolicy(name="beyond", cap=99)).cap == 10
    assert Shares(10, None).get("any").cap == 10


def test_a_second_definition_replaces_the_policy_and_keeps_what_runs() -> None:
    driver = Driver(8)
    first = driver.partition("a")
    driver.fill(3, "a")
    again = driver.controller.shares.define(PartitionPolicy(name="a", share=0.5, cap=4))
    assert again is first
    assert (first.inflight, first.cap, first.guarantee) == (3, 4, 4)
    assert driver.controller.shares.held == 1


def test_a_second_definition_does_not_let_a_frozen_class_go() -> None:
    driver = Driver(8)
    partition = driver.partition("a")
    partition.frozen_at_ns, partition.room = driver.now_ns, 2
    driver.controller.shares.define(PartitionPolicy(name="a", cap=6))
    assert partition.room == 2
    driver.controller.shares.define(PartitionPolicy(name="a", cap=1))
    assert partition.room == 1


def test_names_are_bounded() -> None:
    made = Shares(4, None)
    for i in range(MAX_PARTITIONS):
        assert made.get(str(i)).name == str(i)
    assert made.get("one more").name == OTHER
    assert made.get("another") is made.get("one more")
    assert made.get("7").name == "7"
    assert len(list(made)) == MAX_PARTITIONS + 1


def test_find_does_not_make() -> None:
    made = Shares(4, None)
    assert made.find("a") is None
    assert made.get("a") is made.find("a")


def test_what_is_held_back_goes_to_its_class_only() -> None:
    driver = Driver(4, partitions=[PartitionPolicy(name="promised", share=0.5)])
    others = [driver.arrive(partition="other", timeout=0) for _ in range(3)]
    assert [t.state.value for t in others] == ["granted", "granted", "shed"]
    driver.fill(2, "promised")
    assert driver.controller.inflight == 4


def test_what_is_held_back_follows_the_limit() -> None:
    driver = Driver(10, partitions=[PartitionPolicy(name="promised", share=0.3)])
    assert driver.controller.shares.held == 3
    driver.controller.set_limit(4, driver.now_ns)
    assert driver.controller.shares.held == 2
    driver.fill(2, "other")
    assert driver.arrive(partition="other", timeout=0).reason is not None
    driver.controller.set_limit(None, driver.now_ns)
    driver.fill(5, "other")
    assert driver.arrive(partition="other", timeout=0).reason is not None


def test_a_class_beyond_its_share_competes_like_the_others() -> None:
    driver = Driver(4, partitions=[PartitionPolicy(name="promised", share=0.25)])
    driver.fill(4, "promised")
    assert driver.arrive(partition="other", timeout=0).reason is not None
    assert driver.controller.shares.held == 0
