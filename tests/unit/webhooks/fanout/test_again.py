"""Redrive, replay, resolve: what people do with deliveries, and how consumers stand."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.fanout import GiveUp, State, Subscriptions
from gunicorn_admission.webhooks.fanout.redrive import redrive
from gunicorn_admission.webhooks.fanout.replay import Replayed, replay
from gunicorn_admission.webhooks.fanout.resolve import resolve
from gunicorn_admission.webhooks.fanout.selection import Selection, parse_event
from gunicorn_admission.webhooks.fanout.statistics import statistics
from gunicorn_admission.webhooks.gates import Ceiling
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import audit
from tests.fanning import WallClock, put, states
from tests.unit.webhooks.fanout.test_delivery import Fleet, fleet, set_gate

__all__ = ["fleet"]

ALL = Selection()


@pytest.fixture
def dead(fleet: Fleet, clock: WallClock) -> Fleet:
    """Three dead letters an hour apart, and one that is completed."""
    for event_id, kind in (("a", "invoice.paid"), ("b", "charge.failed"), ("c", "charge.lost")):
        put(fleet.store, event_id, type=kind)
        fleet.failing[event_id] = [GiveUp(f"for {event_id}")]
        clock.advance(3600)
    put(fleet.store, "fine")
    fleet.worker().drain()
    fleet.calls.clear()
    return fleet


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({}, ["a", "b", "c"]),
        ({"events": [("stripe", "b")]}, ["b"]),
        ({"events": [("github", "b")]}, []),
        ({"type": "charge.failed"}, ["b"]),
        ({"type": "charge.*"}, ["b", "c"]),
        ({"type": "charge%"}, []),
        ({"source": "github"}, []),
        ({"error": "for c"}, ["c"]),
        ({"since": 1_800_003_600_000_000}, ["b", "c"]),
        ({"since": 1_800_003_600_000_000, "until": 1_800_007_200_000_000}, ["b"]),
    ],
)
def test_redrive_takes_what_is_meant(
    dead: Fleet, selection: dict[str, Any], expected: list[str]
) -> None:
    chosen = Selection(**selection)
    assert redrive(dead.store, "it", chosen, dry_run=True) == len(expected)
    worker = dead.worker()
    assert worker.drain() == 0
    assert redrive(dead.store, "it", chosen) == len(expected)
    worker.drain()
    assert dead.calls == expected


def test_redriven_one_has_all_its_attempts(dead: Fleet, clock: WallClock) -> None:
    dead.failing["a"] = [ValueError()] * 3
    redrive(dead.store, "it", Selection(events=(("stripe", "a"),)))
    for _ in range(3):
        dead.worker().drain()
        clock.advance(3600)
    assert dead.calls == ["a"] * 3
    assert states(dead.store, "it")["a"] == "dead"


def test_redrive_leaves_other_consumers_alone(dead: Fleet) -> None:
    Subscriptions(dead.store).create("other", start_at="earliest")
    before = states(dead.store, "other")
    redrive(dead.store, "it", ALL)
    assert states(dead.store, "other") == before


def test_redrive_of_what_waits_skips_its_backoff(fleet: Fleet) -> None:
    put(fleet.store, "a")
    fleet.failing["a"] = [ValueError()]
    worker = fleet.worker()
    worker.drain()
    assert worker.drain() == 0
    assert redrive(fleet.store, "it", ALL, states=[State.PENDING]) == 1
    worker.drain()
    assert states(fleet.store, "it") == {"a": "completed"}


def test_many_are_redriven_in_steps(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gunicorn_admission.webhooks.fanout.redrive._STEP", 5)
    fleet.failing = {f"e{n}": [GiveUp()] for n in range(13)}
    put(fleet.store, *fleet.failing)
    fleet.worker().drain()
    seen: list[int] = []
    assert redrive(fleet.store, "it", ALL, progress=seen.append) == 13
    assert seen == [5, 10, 13]


def test_replay_of_what_is_completed_is_a_no_op(fleet: Fleet) -> None:
    put(fleet.store, "a", "b")
    worker = fleet.worker()
    worker.drain()
    for _ in range(2):
        assert replay(fleet.store, "it", ALL) == Replayed(completed=2)
        assert worker.drain() == 2
    assert fleet.calls == ["a", "b"]
    assert fleet.counts["deduplicated"] == 4
    assert set(states(fleet.store, "it").values()) == {"completed"}


def test_forced_replay_does_it_again_and_charges_it_again(fleet: Fleet) -> None:
    set_gate(fleet.store, Ceiling(3, "requests", per="day"))
    put(fleet.store, "a", "b")
    worker = fleet.worker()
    worker.drain()
    assert replay(fleet.store, "it", ALL, force=True) == Replayed(again=2)
    worker.drain()
    assert fleet.calls == ["a", "b", "a"]
    assert sorted(states(fleet.store, "it").values()) == ["completed", "refused"]


def test_replay_says_first_what_it_would_do(fleet: Fleet, clock: WallClock) -> None:
    put(fleet.store, "done", "bad")
    fleet.failing["bad"] = [GiveUp()]
    worker = fleet.worker()
    worker.drain()
    put(fleet.store, "waits")
    put(fleet.store, "github-one", source="github")
    Subscriptions(fleet.store).update("it", filter={"source": ["stripe"]})
    before = states(fleet.store, "it")
    seen: list[tuple[int, int]] = []
    expected = Replayed(delivered=1, completed=1, waiting=1, unwanted=1)
    counted = replay(fleet.store, "it", ALL, dry_run=True, progress=lambda *at: seen.append(at))
    assert counted == expected
    assert seen == [(4, 4)]
    assert states(fleet.store, "it") == before
    assert replay(fleet.store, "it", ALL) == expected


def test_replay_reaches_events_from_before_the_subscription(store: Store) -> None:
    put(store, "old", "older")
    Subscriptions(store).create("it")
    one = Fleet(store)
    assert replay(store, "it", Selection(events=(("stripe", "old"),))) == Replayed(delivered=1)
    one.worker().drain()
    assert one.calls == ["old"]


def test_rollback_and_return_repeats_nothing(fleet: Fleet) -> None:
    """Disabled with some done; what is replayed on its return meets the same ledger."""
    book = Subscriptions(fleet.store)
    put(fleet.store, "a", "b")
    worker = fleet.worker()
    worker.drain()
    book.disable("it")
    put(fleet.store, "c")
    worker.drain()
    book.resume("it")
    replay(fleet.store, "it", ALL)
    worker.drain()
    assert fleet.calls == ["a", "b", "c"]


def test_removed_and_made_again_repeats_nothing(fleet: Fleet) -> None:
    book = Subscriptions(fleet.store)
    put(fleet.store, "a")
    worker = fleet.worker()
    worker.drain()
    book.remove("it")
    book.create("it", start_at="earliest")
    worker.drain()
    worker.drain()
    assert fleet.calls == ["a"]
    assert states(fleet.store, "it") == {"a": "completed"}


def test_what_was_seen_in_shadow_can_be_replayed(fleet: Fleet) -> None:
    book = Subscriptions(fleet.store)
    book.set_mode("it", "shadow")
    put(fleet.store, "a")
    worker = fleet.worker()
    worker.drain()
    book.resume("it")
    assert replay(fleet.store, "it", ALL) == Replayed(delivered=1)
    worker.drain()
    assert fleet.calls == ["a"]


def test_refused_stays_refused_in_a_replay(fleet: Fleet) -> None:
    set_gate(fleet.store, Ceiling(0, "requests", per="day"))
    put(fleet.store, "a")
    worker = fleet.worker()
    worker.drain()
    replay(fleet.store, "it", ALL)
    worker.drain()
    assert fleet.calls == []
    assert states(fleet.store, "it") == {"a": "refused"}
    assert fleet.counts["refused"] == 1


@pytest.mark.parametrize("happened", [True, False])
def test_uncertain_is_resolved_by_a_person(fleet: Fleet, clock: WallClock, happened: bool) -> None:
    put(fleet.store, "a")
    fleet.runner(on_uncertain="review").claim(1)
    clock.advance(61)
    worker = fleet.worker(on_uncertain="review")
    worker.drain()
    if happened:
        resolve(fleet.store, "it", "stripe", "a")
    else:
        redrive(fleet.store, "it", ALL, states=[State.UNCERTAIN])
    worker.drain()
    assert states(fleet.store, "it") == {"a": "completed"}
    assert fleet.calls == ([] if happened else ["a"])
    replay(fleet.store, "it", ALL)
    worker.drain()
    assert len(fleet.calls) == (not happened)
    with pytest.raises(ConfigError, match="it is"):
        resolve(fleet.store, "it", "stripe", "a")
    with pytest.raises(ConfigError, match="not there"):
        resolve(fleet.store, "it", "stripe", "other")


def test_unknown_subscription(store: Store) -> None:
    for act in (redrive, replay):
        with pytest.raises(ConfigError, match="there is none yet"):
            act(store, "it", ALL)


def test_what_was_done_is_noted(dead: Fleet) -> None:
    redrive(dead.store, "it", Selection(type="charge.*"), actor="ann")
    replay(dead.store, "it", Selection(events=(("stripe", "fine"),)), actor="ann", force=True)
    with dead.store.read() as connection:
        query = select(audit).where(audit.c.actor == "ann").order_by(audit.c.id)
        first, second = connection.execute(query).all()
    assert first.action == "deliveries.redrive"
    assert first.detail == {"type": "charge.*", "states": ["dead"], "count": 2}
    assert second.detail == {"events": ["stripe/fine"], "force": True, "again": 1}


@pytest.mark.parametrize("text", ["", "evt_1", "/evt", "stripe/"])
def test_event_must_name_its_source(text: str) -> None:
    with pytest.raises(ConfigError, match="SOURCE/EVENT_ID"):
        parse_event(text)


def test_id_may_hold_a_slash() -> None:
    assert parse_event("shop/a/b") == ("shop", "a/b")


def test_statistics(dead: Fleet, clock: WallClock) -> None:
    put(dead.store, "late", "later")
    dead.failing["late"] = [ValueError()]
    Subscriptions(dead.store).update("it", objective="2m")
    Subscriptions(dead.store).create("idle")
    dead.worker().drain(1)
    clock.advance(121)
    replay(dead.store, "it", Selection(events=(("stripe", "fine"),)))
    idle, it = statistics(dead.store, counters=True)
    assert (idle.name, idle.waiting, idle.oldest_age, idle.is_late) == ("idle", 0, None, False)
    assert set(idle.counters.values()) == {0}
    assert it.backlog == {"pending": 2}
    assert it.oldest_age == 121
    assert it.is_late
    assert it.counters["dead"] == 3
    assert it.counters["failed"] == 4
    assert it.counters["completed"] == 2
    assert [one.name for one in statistics(dead.store, ["idle"])] == ["idle"]
    assert statistics(dead.store)[1].counters == {}
