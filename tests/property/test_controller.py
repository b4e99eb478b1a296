"""What holds for a controller whatever happens to it, in any order."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gunicorn_admission.core.events import EventKind
from gunicorn_admission.core.limits import AdaptiveLimit
from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.core.snapshot import snapshot
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Mode, Outcome, Priority, Reason, State
from tests.driving import HIGH, LOW, MS, Driver, S, Script

NEXT = {
    State.NEW: set(State) - {State.NEW, State.ENDED},
    State.WAITING: {State.WAITING, State.GRANTED, State.SHED},
    State.GRANTED: {State.GRANTED, State.ENDED},
    State.SHED: {State.SHED},
    State.ENDED: {State.ENDED},
}
OPPOSITES = [
    (EventKind.OVERLOADED, EventKind.RECOVERED),
    (EventKind.STALLED, EventKind.RESUMED),
    (EventKind.STARVED, EventKind.REPLENISHED),
]
CLASSES = ["plain", "shared", "capped", "shop", "new"]
PARTITIONS = [
    PartitionPolicy(name="shared", share=0.3),
    PartitionPolicy(name="capped", cap=2, share=0.1, retries=False),
    PartitionPolicy(name="shop", max_refusals=3, stream=True),
]

classes = st.sampled_from(CLASSES)
outcomes = st.sampled_from(Outcome)
waits = st.none() | st.sampled_from([0.0, 5.0, 40.0, 400.0, 20_000.0])
pick = st.integers(0, 10**6)


class Node:
    """A bound that others have a part in, in plain numbers."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.others = 0
        self.own: Counter[str] = Counter()

    def take(self, name: str, now_ns: int) -> bool:
        found = self.has_room(name, now_ns)
        self.own[name] += found
        return found

    def has_room(self, name: str, now_ns: int) -> bool:
        # One class has a bound of its own.
        return self.total() < self.limit and (name != "capped" or self.own[name] < 1)

    def force(self, name: str) -> None:
        self.own[name] += 1

    def give(self, name: str) -> None:
        self.own[name] -= 1

    def move(self, old: str, new: str, now_ns: int, *, force: bool) -> bool:
        if not force and new == "capped" and self.own[new]:
            return False
        self.own[old] -= 1
        self.own[new] += 1
        return True

    def bound(self) -> int:
        return self.limit

    def total(self) -> int:
        return self.own.total() + self.others


class Machine(RuleBasedStateMachine):
    """Requests of every kind, and an operator who changes everything."""

    driver: Driver
    script: Script | None

    @initialize(
        limit=st.sampled_from([1, 2, 4, 9, 20]),
        algorithm=st.sampled_from(["script", "adaptive"]),
        max_queue=st.sampled_from([0, 1, 3, 16]),
        low_wait_ms=st.sampled_from([0, 30]),
        class_cap=st.none() | st.integers(1, 9),
        node=st.none() | st.integers(1, 12),
    )
    def start(
        self,
        limit: int,
        algorithm: str,
        max_queue: int,
        low_wait_ms: int,
        class_cap: int | None,
        node: int | None,
    ) -> None:
        self.script = Script(limit) if algorithm == "script" else None
        self.driver = Driver(
            self.script or AdaptiveLimit(maximum=limit),
            partitions=PARTITIONS,
            max_limit=limit,
            max_queue=max_queue,
            low_max_wait_ns=low_wait_ms * MS,
            class_cap=class_cap,
            stall_after_ns=S,
        )
        self.states: dict[Ticket, State] = {}
        self.forced = False  # the bounds did not hold at some time
        self.on: dict[tuple[EventKind, str | None], bool] = {}
        self.controller = self.driver.controller
        self.node = None if node is None else Node(node)
        self.controller.shared = self.node

    # -- requests --------------------------------------------------------------------

    @rule(
        priority=st.sampled_from(Priority),
        partition=classes,
        timeout=waits,
        deadline=waits,
        age=st.sampled_from([0.0, 0.0, 50.0]),
    )
    def arrive(self, priority: Priority, partition: str, **times: Any) -> None:
        group = self.driver.partition(partition)
        stalled = group.stalled
        ticket = self.driver.arrive(priority, partition, **times)
        if ticket.state is State.GRANTED and self.controller.mode is Mode.ENFORCE:
            assert group.inflight <= group.cap
            if group.inflight > group.guarantee and not stalled and not self._was_hopeless(ticket):
                assert self.controller.inflight + self.controller.shares.held <= (
                    self.controller.allowed
                )
        evicted = [t for t in self.controller.changed if t.reason is Reason.EVICTED]
        assert len(evicted) <= 1
        assert all(t.priority > ticket.priority for t in evicted)
        assert not evicted or ticket.state is State.WAITING

    def _was_hopeless(self, ticket: Ticket) -> bool:
        return self.controller.hopeless(ticket, ticket.granted_ns)

    @rule(priority=st.sampled_from(Priority), partition=classes)
    def arrive_twice(self, priority: Priority, partition: str) -> None:
        """Who is turned away unseen would have been refused for the same reason as a ticket."""
        now_ns = self.driver.now_ns
        self.driver.partition(partition)
        twin = copy.deepcopy(self.controller)
        answer = twin.turn_away_unseen(twin.shares.get(partition), priority, now_ns)
        ticket = self.driver.arrive(priority, partition)
        if answer is not None:
            assert ticket.state is State.SHED
            assert answer == (ticket.reason, ticket.retry_after_ns)
            assert snapshot(twin, now_ns) == snapshot(self.controller, now_ns)

    @precondition(lambda self: self.controller.inflight)
    @rule(priority=st.sampled_from(Priority))
    def press(self, priority: Priority) -> None:
        """More than can be served, for long enough to be overload."""
        for _ in range(9):
            self.driver.arrive(HIGH, "new", timeout=300.0)
            self.driver.arrive(priority, "plain")
            self.driver.advance(25)

    @rule(count=st.integers(2, 12), partition=classes)
    def burst(self, count: int, partition: str) -> None:
        for _ in range(count):
            self.driver.arrive(partition=partition)

    @precondition(lambda self: self._of(State.GRANTED))
    @rule(which=pick, outcome=outcomes)
    def finish(self, which: int, outcome: Outcome) -> None:
        running = self._of(State.GRANTED)
        self.driver.finish(running[which % len(running)], outcome=outcome)

    @precondition(lambda self: self._of(State.GRANTED))
    @rule(count=st.integers(1, 30), outcome=outcomes, gap_ms=st.sampled_from([0.0, 1.0, 30.0]))
    def finish_many(self, count: int, outcome: Outcome, gap_ms: float) -> None:
        for ticket in self._of(State.GRANTED)[:count]:
            self.driver.pass_time(gap_ms)
            self.driver.finish(ticket, outcome=outcome)

    @precondition(lambda self: self.driver.tickets)
    @rule(which=pick)
    def abandon(self, which: int) -> None:
        self.driver.abandon(self._any(which))

    @precondition(lambda self: self.driver.tickets)
    @rule(which=pick, outcome=outcomes)
    def finish_any(self, which: int, outcome: Outcome) -> None:
        """Also what waits, was refused or has ended: a caller's mistake must do no harm."""
        self.driver.finish(self._any(which), outcome=outcome)

    @precondition(lambda self: self.driver.tickets)
    @rule(which=pick)
    def detach(self, which: int) -> None:
        self.driver.detach(self._any(which))

    @precondition(lambda self: self.driver.tickets)
    @rule(which=pick, partition=classes)
    def reclassify(self, which: int, partition: str) -> None:
        group = self.driver.partition(partition)
        self.controller.reclassify(self._any(which), group, self.driver.now_ns)

    @precondition(lambda self: self.driver.tickets)
    @rule(which=pick, partition=classes)
    def reclassify_if_there_is_room(self, which: int, partition: str) -> None:
        group, ticket = self.driver.partition(partition), self._any(which)
        before = ticket.partition
        if self.controller.reclassify(ticket, group, self.driver.now_ns, force=False):
            assert ticket.state is not State.GRANTED or ticket.partition is group
        else:
            assert ticket.partition is before
            assert ticket.state is State.GRANTED

    @precondition(lambda self: self.node is not None)
    @rule(held=st.integers(0, 12))
    def others_on_the_node(self, held: int) -> None:
        assert self.node is not None
        self.node.others = max(0, min(held, self.node.limit - self.node.own.total()))

    # -- time ------------------------------------------------------------------------

    @rule(milliseconds=st.sampled_from([0.001, 1.0, 10.0, 60.0, 130.0, 600.0, 2500.0, 9000.0]))
    def pass_time(self, milliseconds: float) -> None:
        self.driver.pass_time(milliseconds)

    @rule(
        milliseconds=st.sampled_from([0.0, 1.0, 10.0, 60.0, 130.0, 600.0, 2500.0, 9000.0]),
        step=st.none() | st.sampled_from([10.0, 100.0, 500.0]),
    )
    def advance(self, milliseconds: float, step: float | None) -> None:
        self.driver.advance(milliseconds, step)
        now_ns = self.driver.now_ns
        assert all(now_ns < t.expires_ns for t in self._of(State.WAITING))
        before = self.controller.allowed
        self.controller.relimit(now_ns)
        assert self.controller.allowed == before

    @rule()
    def silence(self) -> None:
        """A flag must find its way out without traffic."""
        self.driver.advance(5000, step=500)
        if self.controller.inflight < self.controller.allowed:
            assert not self.controller.congestion.overloaded
        assert all(t.timeout_ns is not None for t in self._of(State.WAITING))

    # -- an operator -----------------------------------------------------------------

    @precondition(lambda self: self.script is not None)
    @rule(limit=st.integers(1, 20))
    def learn(self, limit: int) -> None:
        assert self.script is not None
        self.script.limit = limit
        self.driver.tick()

    @rule(limit=st.none() | st.integers(1, 20))
    def set_limit(self, limit: int | None) -> None:
        most = self.controller.policy.max_limit
        limit = None if limit is None else min(limit, most)
        self.controller.set_limit(limit, self.driver.now_ns)

    @rule(mode=st.sampled_from([Mode.ENFORCE, Mode.ENFORCE, Mode.MONITOR, Mode.OFF]))
    def set_mode(self, mode: Mode) -> None:
        self.forced |= mode is not Mode.ENFORCE
        self.controller.set_mode(mode, self.driver.now_ns)

    @rule(paused=st.sampled_from([True, False, False]))
    def pause(self, paused: bool) -> None:
        self.controller.set_paused(paused, self.driver.now_ns)

    @rule(share=st.none() | st.sampled_from([0.1, 0.5]), cap=st.none() | st.integers(1, 9))
    def redefine(self, share: float | None, cap: int | None) -> None:
        self.controller.shares.define(PartitionPolicy(name="shared", share=share, cap=cap))
        self.controller.grant_waiting(self.driver.now_ns)

    @precondition(lambda self: len(self.driver.tickets) > 30)
    @rule()
    def close(self) -> None:
        self.controller.close(self.driver.now_ns)
        assert not self.controller.waiting

    # -- what always holds -----------------------------------------------------------

    @invariant()
    def counts_agree(self) -> None:
        self.driver.check()
        c, totals = self.controller, self.controller.totals
        assert sum(p.granted for p in c.shares) == sum(totals.granted) == sum(totals.delay_buckets)
        assert sum(p.shed for p in c.shares) == sum(totals.shed.values())
        assert totals.abandoned <= sum(totals.granted) + sum(totals.shed.values())
        assert c.waiting <= c.policy.max_queue
        assert c.streaming == {t for t in self._of(State.GRANTED) if t.detached}
        assert all(0 <= p.room <= p.cap for p in c.shares)
        assert all(p.stuck <= p.running.keys() for p in c.shares)
        assert all(bool(p.frozen_at_ns) for p in c.shares if p.stalled)
        assert not c.paused or c.mode is not Mode.ENFORCE or c.allowed == 0

    @invariant()
    def the_node_knows_what_is_held_here(self) -> None:
        if self.node is not None:
            held = {p.name: p.inflight for p in self.controller.shares if p.inflight}
            assert +self.node.own == held
            if self.controller.mode is Mode.ENFORCE and not self.forced:
                assert self.node.total() <= self.node.limit

    @invariant()
    def each_is_decided_once_and_told_once(self) -> None:
        left_waiting = []
        granted = False
        for ticket in self.driver.tickets:
            before = self.states.get(ticket, State.NEW)
            assert ticket.state in NEXT[before], (before, ticket.state)
            if before is State.WAITING and ticket.state is not State.WAITING:
                left_waiting.append(ticket)
            granted |= before is not State.GRANTED and ticket.state is State.GRANTED
            self.states[ticket] = ticket.state
        changed, self.controller.changed = self.controller.changed, []
        assert len(changed) == len(set(changed))
        assert set(left_waiting) <= set(changed)
        if granted and self.controller.mode is Mode.ENFORCE:
            assert self.controller.inflight <= self.controller.allowed
            assert self.controller.allowed <= self.controller.policy.max_limit

    @invariant()
    def refusals_are_in_order(self) -> None:
        for ticket in self._of(State.SHED):
            assert isinstance(ticket.reason, Reason)
            assert S // 2 <= ticket.retry_after_ns <= 45 * S
            assert not (ticket.priority is HIGH and ticket.reason is Reason.EVICTED)
        if not self.controller.policy.low_max_wait_ns:
            assert not [t for t in self._of(State.WAITING) if t.priority is LOW]

    @invariant()
    def events_alternate(self) -> None:
        for event in self.driver.told():
            for on, off in OPPOSITES:
                if event[0] in (on, off):
                    key = (on, event[1])
                    assert self.on.get(key, False) is (event[0] is off), event
                    self.on[key] = event[0] is on
        flagged = {name for (kind, name), on in self.on.items() if on and name}
        assert flagged == {p.name for p in self.controller.shares if p.stalled}
        overloaded = self.on.get((EventKind.OVERLOADED, None), False)
        assert overloaded is self.controller.congestion.overloaded
        starved = self.on.get((EventKind.STARVED, None), False)
        assert starved is self.controller.starved

    def teardown(self) -> None:
        """Whatever happened, in the end all is as in the beginning."""
        if not hasattr(self, "driver"):
            return
        driver, c = self.driver, self.controller
        if self.node is not None:
            self.node.others = 0
        c.set_mode(Mode.ENFORCE, driver.now_ns)
        c.set_paused(False, driver.now_ns)
        c.set_limit(None, driver.now_ns)
        for _ in range(200):
            for ticket in self._of(State.GRANTED):
                driver.finish(ticket)
            driver.advance(200)
            if not (c.inflight or c.waiting or c.streaming):
                break
        driver.advance(10_000, step=500)
        assert (c.inflight, c.waiting, c.streaming) == (0, 0, set())
        assert self.node is None or self.node.total() == 0
        c.shared = None  # only the limit decides from here on
        assert not c.congestion.overloaded
        assert not any(p.stuck for p in c.shares)
        for partition in [p for p in c.shares if p.stalled]:
            probe = driver.arrive(partition=partition.name, timeout=0)
            assert probe.state is State.GRANTED
            driver.finish(probe)
        assert not any(p.stalled for p in c.shares)
        # A new class without a cap of its own, so that only the limit decides.
        c.shares.define(PartitionPolicy(name="last", cap=c.policy.max_limit))
        free = c.allowed - c.shares.held
        taken = [driver.arrive(partition="last", timeout=0) for _ in range(free + 1)]
        assert [t.state for t in taken] == [State.GRANTED] * free + [State.SHED]

    def _of(self, state: State) -> list[Ticket]:
        return [t for t in self.driver.tickets if t.state is state]

    def _any(self, which: int) -> Ticket:
        return self.driver.tickets[which % len(self.driver.tickets)]


def test_controller() -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(max_examples=60, stateful_step_count=40, deadline=None),
    )
