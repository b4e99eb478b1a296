"""Classes get their shares and caps while the limiter runs."""

from __future__ import annotations

import os

import pytest

from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.errors import Rejected
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.limiter.define import define
from gunicorn_admission.settings import Settings


@pytest.fixture
def limiter() -> Limiter:
    return Limiter(Settings(limit=8))


def test_a_new_class(limiter: Limiter) -> None:
    define(limiter, [PartitionPolicy(name="db", share=0.25, cap=3)])
    seen = limiter.statistics().partitions["db"]
    assert (seen.cap, seen.held) == (3, 2)


def test_a_known_class_keeps_what_it_holds(limiter: Limiter) -> None:
    with limiter.acquire(partition="db"), limiter.acquire(partition="db"):
        define(limiter, [PartitionPolicy(name="db", cap=1)])
        seen = limiter.statistics().partitions["db"]
        assert (seen.cap, seen.inflight) == (1, 2)
        with pytest.raises(Rejected):
            limiter.acquire(partition="db", timeout=0)
    assert limiter.statistics().inflight == 0


def test_repetition_lets_nobody_go(limiter: Limiter) -> None:
    policy = PartitionPolicy(name="db", cap=3)
    define(limiter, [policy])
    partition = limiter.partition("db")
    partition.room = 1  # as when it is suspected to hang
    define(limiter, [policy])
    assert partition.room == 1


def test_a_forked_child_has_them_too(limiter: Limiter) -> None:
    define(limiter, [PartitionPolicy(name="db", cap=3)])
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if limiter.statistics().partitions["db"].cap == 3 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
