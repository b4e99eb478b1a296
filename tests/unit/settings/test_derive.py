"""Sizes from threads: the documented tables, the rule that a refusal needs a thread, units."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gunicorn_admission.core.policy import MILLISECOND, SECOND, PartitionPolicy, Policy
from gunicorn_admission.core.types import Mode, Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import Settings

GATE, EXECUTOR = True, False


@pytest.mark.parametrize(
    ("threads", "limit", "queue", "spare"),
    [
        (2, 1, 0, 1),
        (3, 2, 0, 1),
        (4, 2, 1, 1),
        (8, 5, 2, 1),
        (15, 11, 3, 1),
        (16, 10, 4, 2),
        (32, 22, 8, 2),
    ],
)
def test_gate_keeps_a_thread_to_refuse_with(
    threads: int, limit: int, queue: int, spare: int
) -> None:
    resolved = Settings().derive(threads, GATE)
    assert resolved.policy.max_limit == limit
    assert resolved.policy.max_queue == queue
    assert (resolved.threads, resolved.spare, resolved.off_reason) == (threads, spare, None)


@pytest.mark.parametrize("threads", [1, 4, 32])
def test_executor_uses_every_thread(threads: int) -> None:
    resolved = Settings().derive(threads, EXECUTOR)
    assert resolved.policy.max_limit == threads
    assert resolved.policy.max_queue == 4 * threads
    assert (resolved.spare, resolved.off_reason) == (0, None)
    assert resolved.policy.mode is Mode.ENFORCE


@pytest.mark.parametrize("values", [{}, {"limit": 8}, {"min_limit": 3}, {"max_queue": 9}])
def test_one_thread_cannot_wait_and_work(values: dict[str, Any]) -> None:
    resolved = Settings(**values).derive(1, GATE)
    assert resolved.policy.mode is Mode.OFF
    assert resolved.off_reason is not None
    assert "--threads" in resolved.off_reason


@given(
    threads=st.integers(1, 200),
    gate=st.booleans(),
    limit=st.one_of(st.just("adaptive"), st.integers(1, 210)),
    max_limit=st.none() | st.integers(1, 210),
    min_limit=st.none() | st.integers(1, 210),
    max_queue=st.none() | st.integers(0, 210),
    reserve=st.none() | st.integers(0, 210),
)
def test_what_is_not_refused_fits(threads: int, gate: bool, **values: Any) -> None:
    try:
        settings = Settings(**values)
    except ConfigError:
        assume(False)
    try:
        resolved = settings.derive(threads, gate)
    except ConfigError as error:
        assert getattr(settings, error.field) == error.value, "blames a setting that was not made"
        return
    policy = resolved.policy
    if resolved.off_reason:
        assert (threads, gate) == (1, True)
        return
    waiting = policy.max_queue if gate else 0
    assert policy.max_limit + waiting + resolved.spare <= threads
    assert 1 <= policy.min_limit <= policy.max_limit
    assert not gate or resolved.spare >= 1
    assert values["max_queue"] in (None, policy.max_queue)
    assert values["reserve"] in (None, resolved.spare)
    assert resolved.fixed_limit is None or resolved.fixed_limit <= policy.max_limit


@pytest.mark.parametrize(
    ("values", "field", "largest", "total"),
    [
        ({"limit": 8}, "limit", 7, "limit 8 + waiting 0 + spare 1 = 9"),
        ({"max_limit": 8}, "max_limit", 7, "limit 8 + waiting 0 + spare 1 = 9"),
        ({"limit": 6, "max_queue": 4}, "limit", 3, "limit 6 + waiting 4 + spare 1 = 11"),
        ({"max_queue": 8}, "max_queue", 6, "limit 1 + waiting 8 + spare 1 = 10"),
        ({"limit": 2, "max_queue": 7}, "max_queue", 5, "limit 2 + waiting 7 + spare 1 = 10"),
        ({"limit": 6, "reserve": 4}, "limit", 4, "limit 6 + waiting 0 + spare 4 = 10"),
    ],
)
def test_gate_refuses_what_could_never_refuse(
    values: dict[str, Any], field: str, largest: int, total: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(**values).derive(8, GATE)
    assert caught.value.field == field
    assert caught.value.expected == f"at most {largest}: {total}, but there are 8 threads"
    assert f"set {field} = {largest} or --threads" in caught.value.hint
    Settings(**{**values, field: largest}).derive(8, GATE)


def test_a_limit_takes_its_room_from_the_derived_queue() -> None:
    assert Settings(limit=5).derive(8, GATE).policy.max_queue == 2
    assert Settings(limit=6).derive(8, GATE).policy.max_queue == 1
    assert Settings(limit=7).derive(8, GATE).policy.max_queue == 0


def test_a_reserve_takes_its_room_from_the_derived_queue() -> None:
    resolved = Settings(reserve=6).derive(8, GATE)
    assert (resolved.policy.max_limit, resolved.policy.max_queue, resolved.spare) == (1, 1, 6)


def test_executor_refuses_a_limit_above_the_threads() -> None:
    assert Settings(limit=8).derive(8, EXECUTOR).fixed_limit == 8
    with pytest.raises(ConfigError, match=r"limit = 9: expected at most 8"):
        Settings(limit=9).derive(8, EXECUTOR)
    with pytest.raises(ConfigError, match=r"max_limit = 8: expected at most 6"):
        Settings(max_limit=8, reserve=2).derive(8, EXECUTOR)


@pytest.mark.parametrize(("gate", "reserve"), [(GATE, 0), (GATE, 8), (EXECUTOR, 8)])
def test_reserve_must_leave_work_and_room(gate: bool, reserve: int) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(reserve=reserve).derive(8, gate)
    assert caught.value.field == "reserve"


def test_min_limit_follows_the_pool() -> None:
    floors = [Settings().derive(n, EXECUTOR).policy.min_limit for n in (1, 8, 9, 32)]
    assert floors == [1, 1, 2, 4]
    assert Settings(min_limit=3).derive(8, EXECUTOR).policy.min_limit == 3
    with pytest.raises(ConfigError, match=r"min_limit = 9: expected at most 8"):
        Settings(min_limit=9).derive(8, EXECUTOR)


def test_threads_must_exist() -> None:
    with pytest.raises(ConfigError, match="threads = 0"):
        Settings().derive(0, EXECUTOR)


@pytest.mark.parametrize(
    ("values", "threads", "cap"),
    [
        ({}, 3, None),
        ({}, 4, 3),
        ({}, 32, 28),
        ({"limit": 8}, 32, None),
        ({"limit": 8, "max_limit": 32}, 32, None),
        ({"limit": 8, "cap": 7}, 32, 7),
        ({"cap": 2}, 32, 2),
        ({"cap": {"/a": 2}}, 32, 28),
        ({"partition_by": "none"}, 32, None),
        ({"partition_by": "route"}, 32, None),
        ({"partition_by": "route", "routes": {"/a": "exempt"}}, 32, None),
        ({"partition_by": "route", "routes": {"/a": "low"}}, 32, 28),
    ],
)
def test_no_class_may_hold_the_whole_pool(
    values: dict[str, Any], threads: int, cap: int | None
) -> None:
    assert Settings(**values).derive(threads, EXECUTOR).policy.class_cap == cap


def test_algorithm_and_fixed_limit() -> None:
    vegas, fixed = Settings(limit="vegas").derive(8, GATE), Settings(limit=3).derive(8, GATE)
    assert (vegas.algorithm, vegas.fixed_limit) == ("vegas", None)
    assert (fixed.algorithm, fixed.fixed_limit, fixed.policy.max_limit) == ("fixed", 3, 3)
    roomy = Settings(limit=3, max_limit=5).derive(8, GATE)
    assert (roomy.fixed_limit, roomy.policy.max_limit) == (3, 5)


def test_times_become_nanoseconds() -> None:
    settings = Settings(
        mode="monitor", max_wait="50ms", low_max_wait="10ms", target_delay="5ms", interval="200ms",
        stall_after="7s", retry_after=("2s", "1m"), threads=8,
    )  # fmt: skip
    assert settings.derive(8, EXECUTOR).policy == Policy(
        max_limit=8,
        min_limit=1,
        max_queue=32,
        max_wait_ns=50 * MILLISECOND,
        low_max_wait_ns=10 * MILLISECOND,
        target_ns=5 * MILLISECOND,
        interval_ns=200 * MILLISECOND,
        class_cap=7,
        stall_after_ns=7 * SECOND,
        retry_after_ns=(2 * SECOND, 60 * SECOND),
        mode=Mode.MONITOR,
    )


def test_unset_times_keep_their_defaults() -> None:
    policy = Settings(low_max_wait="9s").derive(8, EXECUTOR).policy
    assert policy.max_wait_ns == SECOND // 2
    assert policy.low_max_wait_ns == SECOND // 2, "low may not wait longer than the others"
    assert policy.target_ns is None


def test_classes_that_are_named_anywhere() -> None:
    settings = Settings(
        routes={
            "/pay": "high",
            "/a": {"name": "db", "cap": 4, "priority": "low", "deadline": "3s"},
            "/b": {"name": "db", "retries": False, "stream": True, "release_on": "first_byte"},
            "/x": "exempt",
        },
        share={"/pay": 0.25, "/c": 0.1},
        cap={"/c": 2},
    )
    assert settings.derive(8, EXECUTOR).partitions == (
        PartitionPolicy(name="/pay", priority=Priority.HIGH, share=0.25),
        PartitionPolicy(
            name="db",
            priority=Priority.DEFAULT,
            cap=4,
            deadline_ns=3 * SECOND,
            retries=False,
            stream=True,
            release_on_first_byte=True,
        ),
        PartitionPolicy(name="/c", share=0.1, cap=2),
    )
