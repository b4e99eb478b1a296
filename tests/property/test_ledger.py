"""The ledger on SQLite against a model of plain dictionaries."""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

from gunicorn_admission.webhooks.gates import Ceiling, GatePolicy
from gunicorn_admission.webhooks.gates.errors import LedgerConflict
from gunicorn_admission.webhooks.gates.permits import approve, reject, release
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import ceilings, ledger, windows
from tests.gating import DAY, HOUR, LEASE, Gated

EVENTS = st.sampled_from(["a", "b", "c", "d", "e", "f"])
COSTS = st.fixed_dictionaries({"requests": st.integers(0, 3), "tokens": st.integers(0, 60)})
#: In the order in which a policy sorts them.
CEILINGS = (("requests", "day"), ("requests", "month"), ("tokens", "day"))


def label(per: str, now: int) -> str:
    at = datetime.fromtimestamp(now / 1e6, UTC)
    return f"{at:%Y-%m-%d}" if per == "day" else f"{at:%Y-%m}"


def end_of(per: str, name: str) -> int:
    if per == "day":
        end = datetime.fromisoformat(name) + timedelta(days=1)
    else:
        end = (datetime.fromisoformat(f"{name}-01") + timedelta(days=31)).replace(day=1)
    return round(end.replace(tzinfo=UTC).timestamp()) * 1_000_000


class Event:
    def __init__(self) -> None:
        self.state = "new"
        self.attempts = 0
        self.lease_until = 0
        self.held: dict[tuple[int, str], int] | None = None
        self.until = 0
        self.permit: str | None = None
        self.said: tuple[str, str] | None = None  # decision and window
        self.updated = 0


class Model:
    """What the ledger should do, in the words of its documentation."""

    def __init__(self, hard: list[int], charge: str, at_ceiling: str) -> None:
        self.hard, self.charge, self.at_ceiling = hard, charge, at_ceiling
        self.spent: dict[tuple[int, str], list[int]] = {}
        self.events: dict[str, Event] = {}

    def place(self, index: int, now: int) -> tuple[int, str]:
        """The window: never one before the latest that was used."""
        used = [name for at, name in self.spent if at == index]
        return index, max([label(CEILINGS[index][1], now), *used])

    def end(self, event: Event, spent: dict[str, int] | None) -> int:
        """Settle (or release, at ``None``) what is held; returns what came back."""
        back = 0
        for (index, name), amount in (event.held or {}).items():
            window = self.spent[index, name]
            window[0] -= amount
            real = 0 if spent is None else spent.get(CEILINGS[index][0], amount)
            window[1] += real
            back = max(back, amount - real)
        event.held = None
        return back

    def wake(self, now: int) -> None:
        waiting = [e for e in self.events.values() if e.state == "deferred" and e.until > now]
        if waiting:
            oldest = min(waiting, key=lambda e: e.updated)
            oldest.until = now
            oldest.updated = now

    def admit(self, name: str, cost: dict[str, int], now: int) -> tuple[str, bool]:
        event = self.events.setdefault(name, Event())
        if event.state == "completed":
            return "deduplicated", True
        if event.state == "reserved" and event.lease_until > now:
            return "in_progress", False
        if event.state in ("refused", "review", "rejected"):
            return event.state.replace("rejected", "refused"), False
        if event.state == "deferred" and event.until > now:
            return "deferred", False
        event.updated = now
        if event.state == "reserved" and self.charge == "attempt":
            self.end(event, {})
        if event.held is None:
            places = [self.place(index, now) for index in range(len(CEILINGS))]
            amounts = [cost[unit] for unit, _ in CEILINGS]
            full = [
                at
                for at, amount in zip(places, amounts, strict=True)
                if amount and sum(self.spent.get(at, [0, 0])) + amount > self.hard[at[0]]
            ]
            if full and event.permit != "beyond":
                return self.decline(event, full, amounts)
            for at, amount in zip(places, amounts, strict=True):
                self.spent.setdefault(at, [0, 0])[0] += amount
            event.held = dict(zip(places, amounts, strict=True))
            for (index, window), amount in event.held.items():
                used = sum(self.spent[index, window])
                assert event.permit == "beyond" or not amount or used <= self.hard[index]
        event.state, event.lease_until = "reserved", now + LEASE
        event.attempts += 1
        return "admitted", True

    def decline(
        self, event: Event, full: list[tuple[int, str]], amounts: list[int]
    ) -> tuple[str, bool]:
        decision = {"refuse": "refused", "defer": "deferred"}.get(self.at_ceiling, "review")
        if event.permit:
            decision = "deferred"
        ends = [(end_of(CEILINGS[index][1], name), name) for index, name in full]
        until, window = max(ends, key=lambda each: each[0])
        for index, name in full:
            if amounts[index] > self.hard[index]:
                decision, window = "refused", name
                break
        is_new = event.said != (decision, window)
        event.state, event.said, event.until = decision, (decision, window), until
        return decision, is_new


class Machine(RuleBasedStateMachine):
    def __init__(self, template: Path, folder: Path) -> None:
        super().__init__()
        path = folder / f"{id(self)}.db"
        shutil.copy(template, path)
        self.path = path
        self.store = Store(f"sqlite:///{path}")

    def teardown(self) -> None:
        self.store.close()
        self.path.unlink()

    @initialize(
        hard=st.tuples(st.integers(0, 6), st.integers(2, 9), st.integers(0, 150)),
        charge=st.sampled_from(["event", "attempt", "actual"]),
        at_ceiling=st.sampled_from(["refuse", "defer", "review"]),
    )
    def begin(self, hard: tuple[int, int, int], charge: str, at_ceiling: str) -> None:
        self.model = Model(list(hard), charge, at_ceiling)
        self.gated = Gated(self.store, self.policy())
        self.lost: list[tuple[str, str]] = []

    def policy(self) -> GatePolicy:
        return GatePolicy(
            [
                Ceiling(hard, unit, per=per)
                for hard, (unit, per) in zip(self.model.hard, CEILINGS, strict=True)
            ],
            charge=self.model.charge,
            at_ceiling=self.model.at_ceiling,
            cost={"tokens": 0},
        )

    def tick(self) -> int:
        self.gated.now += 1
        return self.gated.now

    @rule(name=EVENTS, cost=COSTS)
    def admit(self, name: str, cost: dict[str, int]) -> None:
        now = self.tick()
        before = self.gated.leases.get(name)
        expected = self.model.admit(name, cost, now)
        told = self.gated.admit(name, cost)
        assert (told.kind.value, told.is_new) == expected
        assert told.attempt == self.model.events[name].attempts
        if told.kind.value == "admitted" and before:
            self.lost.append((name, before))
        if told.kind.value in ("refused", "deferred", "review"):
            again = self.gated.admit(name, cost)
            assert (again.kind, again.is_new) == (told.kind, False)
            assert (again.reason, again.standing) == (told.reason, told.standing)

    def running(self, name: str) -> Event | None:
        event = self.model.events.get(name)
        return event if event is not None and event.state == "reserved" else None

    @rule(name=EVENTS, actual=st.none() | COSTS)
    def complete(self, name: str, actual: dict[str, int] | None) -> None:
        event, now = self.running(name), self.tick()
        if event is None:
            assert name not in self.gated.leases or not self.gated.complete(name)
            return
        assert self.gated.complete(name, actual=actual)
        if self.model.end(event, {} if self.model.charge == "event" else actual or {}) > 0:
            self.model.wake(now)
        event.state = "completed"

    @rule(name=EVENTS, actual=st.none() | COSTS)
    def fail(self, name: str, actual: dict[str, int] | None) -> None:
        event, now = self.running(name), self.tick()
        if event is None:
            assert name not in self.gated.leases or not self.gated.fail(name)
            return
        assert self.gated.fail(name, actual=actual)
        if self.charged(actual) and self.model.end(event, actual or {}) > 0:
            self.model.wake(now)
        event.state = "failed"

    def charged(self, actual: dict[str, int] | None) -> bool:
        charge = self.model.charge
        return charge == "attempt" or (charge == "actual" and actual is not None)

    @rule(name=EVENTS, verb=st.sampled_from(["bury", "skip"]))
    def give_up(self, name: str, verb: str) -> None:
        event, now = self.model.events.get(name), self.tick()
        lease = self.gated.leases.get(name) if self.running(name) else None
        done = getattr(self.gated, verb)(name, lease=lease)
        if event is None:
            assert done == (verb == "skip")
            if done:
                self.model.events[name] = event = Event()
                event.state = "skipped"
            return
        assert done == (event.state != "completed")
        if done:
            spent = {} if lease and self.charged(None) else None
            if self.model.end(event, spent) > 0:
                self.model.wake(now)
            event.state = {"bury": "dead", "skip": "skipped"}[verb]

    @precondition(lambda self: self.lost)
    @rule(data=st.data())
    def zombie(self, data: st.DataObject) -> None:
        name, lease = data.draw(st.sampled_from(self.lost))
        if self.gated.leases[name] == lease:
            return
        assert not self.gated.complete(name, lease)
        assert not self.gated.fail(name, lease)
        assert not self.gated.bury(name, lease=lease)
        assert not self.gated.skip(name, lease=lease)

    @rule(
        name=EVENTS,
        verb=st.sampled_from([release, approve, reject]),
        beyond=st.booleans(),
    )
    def decide(self, name: str, verb: Any, beyond: bool) -> None:
        event = self.model.events.get(name)
        states = ("refused", "rejected", "deferred") if verb is release else ("review",)
        now = self.tick()
        options = {} if verb is reject else {"beyond": beyond}
        if event is None or event.state not in states:
            with pytest.raises(LedgerConflict):
                self.gated.permit(verb, name, **options)
            return
        self.gated.permit(verb, name, **options)
        event.state, event.updated = "rejected", now
        if verb is not reject:
            event.state, event.said = "approved", None
            event.permit = "beyond" if beyond else "approved"

    @rule(index=st.integers(0, 2), hard=st.integers(0, 9))
    def configure(self, index: int, hard: int) -> None:
        now = self.tick()
        self.model.hard[index] = hard * (20 if index == 2 else 1)
        if self.gated.configure(self.policy()):
            for event in self.model.events.values():
                if event.state == "deferred":
                    event.until = min(event.until, now)

    @rule(by=st.sampled_from([LEASE // 2, LEASE + 1, 5 * HOUR, DAY, 20 * DAY, -HOUR, -DAY]))
    def advance(self, by: int) -> None:
        self.gated.now += by

    @invariant()
    def nothing_drifts(self) -> None:
        if not hasattr(self, "model"):
            return
        now = self.gated.now
        leaked = {
            f"stripe/{name}"
            for name, event in self.model.events.items()
            if event.state == "reserved" and event.lease_until < now and any(event.held.values())  # type: ignore[union-attr]
        }
        found = self.gated.audit()
        assert {each.subject for each in found} == leaked, found
        assert {each.fault.value for each in found} <= {"leaked"}
        with self.store.read() as connection:
            numbers = list(connection.scalars(select(ceilings.c.id).order_by(ceilings.c.id)))
            counted = {
                (numbers.index(row.ceiling), row.key): [row.reserved, row.settled]
                for row in connection.execute(select(windows))
            }
            rows = connection.execute(select(ledger.c.event_id, ledger.c.state)).all()
        assert counted == self.model.spent
        states = {name: event.state for name, event in self.model.events.items()}
        assert dict(rows) == states  # type: ignore[arg-type]


@pytest.mark.timeout(120)
def test_the_ledger_is_its_model(migrated_sqlite: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_state_machine_as_test(
            lambda: Machine(migrated_sqlite, Path(folder)),
            settings=settings(
                max_examples=25,
                stateful_step_count=35,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow],
            ),
        )
