"""Limiters by name."""

from __future__ import annotations

import threading

import pytest

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.limiter import Limiter, Registry
from tests.callers import PATIENCE, Caller


def test_one_name_is_one_limiter() -> None:
    registry = Registry()
    made: list[Limiter] = []

    def make() -> Limiter:
        made.append(Limiter())
        return made[-1]

    first = registry.get("db", make)
    assert registry.get("db", make) is first
    assert registry.get("search", make) is not first
    assert len(made) == 2
    assert dict(registry) == {"db": first, "search": made[1]}


def test_of_many_who_come_first_all_get_the_same() -> None:
    registry = Registry()
    barrier = threading.Barrier(8)

    def get() -> Limiter:
        barrier.wait(PATIENCE)
        return registry.get("db", Limiter)

    assert len({id(caller.result()) for caller in [Caller(get) for _ in range(8)]}) == 1


def test_asking_again_does_not_lose_what_runs() -> None:
    registry = Registry()
    permit = registry.get("db", Limiter).acquire()
    assert registry.get("db", Limiter).statistics().inflight == 1
    permit.release()


def test_a_name_that_could_not_be_made_can_be_tried_again() -> None:
    registry = Registry()

    def fail() -> Limiter:
        raise ConfigError("limit", 0, "an integer from 1", "raise it")

    with pytest.raises(ConfigError):
        registry.get("db", fail)
    assert list(registry) == []
    assert registry.get("db", Limiter).statistics().inflight == 0


def test_names_are_bounded() -> None:
    registry = Registry()
    shared = Limiter()
    for i in range(256):
        registry.get(str(i), lambda: shared)
    with pytest.raises(ConfigError, match="not the request"):
        registry.get("one more", lambda: shared)
    assert registry.get("7", Limiter) is shared


def test_it_can_grow_while_it_is_read() -> None:
    registry = Registry()
    registry.get("a", Limiter)
    for name, _ in registry:
        registry.get(name + "b", Limiter)
    assert [name for name, _ in registry] == ["a", "ab"]
