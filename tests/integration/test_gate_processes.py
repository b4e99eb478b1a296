"""A ceiling over several processes, and processes that are killed at every step."""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from multiprocessing.process import BaseProcess

import pytest
from sqlalchemy import func, select

from gunicorn_admission.webhooks.gates import Ceiling, GatePolicy
from gunicorn_admission.webhooks.gates.audit import Fault, audit_ledger
from gunicorn_admission.webhooks.gates.standings import tallies
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import windows
from tests.gating import MONDAY, Gated
from tests.integration.gate_load import CONSUMER, EVENTS, LEASE_US, STEPS, effects, run

#: Real processes, which need not load everything anew.
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.integration.gate_load"])
HARD = 25
PROCESSES = 3

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def start(url: str, now: int, step: str | None = None) -> BaseProcess:
    process = FORKED.Process(target=run, args=(url, now, step))
    process.start()
    return process


def wait(process: BaseProcess) -> int | None:
    process.join()
    return process.exitcode


def prepare(store: Store) -> None:
    with store.transaction() as connection:
        effects.create(connection)
    # Two ceilings, so that locks are taken in an order; the second never fills.
    policy = GatePolicy(
        [Ceiling(HARD, "requests", per="day"), Ceiling(10 * HARD, "requests", per="month")]
    )
    Gated(store, policy, CONSUMER)


def counted(store: Store) -> int:
    with store.read() as connection:
        return connection.scalar(select(func.count()).select_from(effects)) or 0


def check(store: Store, now: int) -> None:
    """The ceiling is met exactly, each effect happened once, and nothing is left over."""
    with store.read() as connection:
        assert audit_ledger(connection, now=now) == []
        done = list(connection.scalars(select(effects.c.event_id)))
        used = [(row.reserved, row.settled) for row in connection.execute(select(windows))]
        (tally,) = tallies(connection, CONSUMER)
    assert len(done) == len(set(done)) == HARD
    assert used == [(0, HARD), (0, HARD)]
    assert tally.states == {"completed": HARD, "refused": len(EVENTS) - HARD}
    assert tally.refused == len(EVENTS) - HARD  # each was told once


def test_a_ceiling_is_met_exactly_by_many_processes(any_store: Store) -> None:
    prepare(any_store)
    url = any_store.engine.url.render_as_string(hide_password=False)
    processes = [start(url, MONDAY) for _ in range(PROCESSES)]
    assert [wait(process) for process in processes] == [0] * PROCESSES
    check(any_store, MONDAY)


def test_killed_at_each_step_and_at_any_moment(any_store: Store) -> None:
    prepare(any_store)
    url = any_store.engine.url.render_as_string(hide_password=False)
    now = MONDAY
    for died, step in enumerate(STEPS, 1):
        process = start(url, now, step)
        assert wait(process) == -signal.SIGKILL, step
        with any_store.read() as connection:
            later = audit_ledger(connection, now=now + LEASE_US + 1)
        # No drift; and of each thread that died, at most one reservation to be taken up.
        assert {each.fault for each in later} <= {Fault.LEAKED}, step
        assert len(later) <= 2 * died
        now += LEASE_US + 1
    before = counted(any_store)
    processes = [start(url, now) for _ in range(PROCESSES)]
    until = time.monotonic() + 60
    while counted(any_store) == before and any(process.is_alive() for process in processes):
        assert time.monotonic() < until
    time.sleep(random.uniform(0, 0.02))  # at any instant, not just behind a commit
    for process in processes:
        process.kill()
        process.join()
    now += LEASE_US + 1
    assert wait(start(url, now)) == 0
    check(any_store, now)
