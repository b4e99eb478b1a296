"""What a ceiling does to deliveries over time, and what the page about it says."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from gunicorn_admission.webhooks.fanout import Consumers, Event, Subscriptions, Worker
from gunicorn_admission.webhooks.gates import Ceiling
from gunicorn_admission.webhooks.pages import Pager, Severity
from gunicorn_admission.webhooks.pages.read import read_pages
from gunicorn_admission.webhooks.pages.wording import Notice
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import attempts, deliveries
from tests.fanning import WallClock, put, states

NAME = "usage-analytics"
DAY = 24 * 3600.0


def _worker(store: Store, calls: list[str], at_ceiling: str, hard: int = 2) -> Worker:
    consumers = Consumers()

    @consumers.consumer(
        NAME, cost=1, ceilings=[Ceiling(hard, "requests", per="day")], at_ceiling=at_ceiling
    )
    def handle(event: Event) -> None:
        calls.append(event.event_id)

    return Worker(store, consumers)


def _pages(store: Store) -> list[Notice]:
    with store.read() as connection:
        return read_pages(connection, [NAME])


@pytest.mark.parametrize(
    ("at_ceiling", "decision"),
    [("refuse", "REFUSED"), ("defer", "DEFERRED"), ("review", "HELD FOR REVIEW")],
)
def test_the_page_alone_names_consumer_event_ceiling_and_decision(
    store: Store, at_ceiling: str, decision: str
) -> None:
    runbook = "https://wiki/usage-analytics"
    Subscriptions(store).create(NAME, severity="critical", runbook=runbook)
    put(store, "evt_1", "evt_2", "evt_3", "evt_4")
    _worker(store, [], at_ceiling).drain()
    (notice,) = _pages(store)
    assert notice.text.startswith(
        f"{NAME} {decision} stripe/evt_3: 2/2 requests (hard, day UTC, resets "
    )
    assert "; 1 more " in notice.text
    assert notice.text.endswith(f"; see {runbook}")
    assert notice.page.severity is Severity.CRITICAL


def test_a_page_is_over_when_its_ceiling_is_raised(store: Store, clock: WallClock) -> None:
    Subscriptions(store).create(NAME)
    put(store, "evt_1", "evt_2", "evt_3")
    _worker(store, [], "refuse").drain()
    pager = Pager(store, [])
    pager.tick()
    assert [notice.resolved_at for notice in _pages(store)] == [None]
    _worker(store, [], "refuse", hard=3).drain()
    clock.advance(10)
    pager.tick()
    assert [notice.resolved_at is None for notice in _pages(store)] == [False]
    put(store, "evt_4", "evt_5")
    _worker(store, [], "refuse", hard=3).drain()
    (notice,) = _pages(store)
    assert f"{NAME} REFUSED stripe/evt_5: 3/3 requests" in notice.text
    assert (notice.count, notice.resolved_at) == (1, None)


def test_a_page_goes_on_while_work_waits_for_the_raised_ceiling_too(
    store: Store, clock: WallClock
) -> None:
    Subscriptions(store).create(NAME)
    put(store, "evt_1", "evt_2", "evt_3", "evt_4")
    pager = Pager(store, [])
    for hard, is_open in ((2, True), (3, True), (4, False)):
        _worker(store, [], "defer", hard=hard).drain()
        clock.advance(10)
        pager.tick()
        assert [notice.resolved_at is None for notice in _pages(store)] == [is_open]


def test_whose_refusals_threaten_nothing_pages_nobody(store: Store) -> None:
    Subscriptions(store).create(NAME, severity="none")
    put(store, "evt_1", "evt_2", "evt_3")
    _worker(store, [], "refuse").drain()
    assert states(store, NAME)["evt_3"] == "refused"
    assert _pages(store) == []


def test_deferred_over_several_windows_is_no_dead_letter_and_no_attempt(
    store: Store, clock: WallClock
) -> None:
    Subscriptions(store).create(NAME, retry={"max_attempts": 1})
    names = [f"evt_{number}" for number in range(1, 8)]
    put(store, *names)
    calls: list[str] = []
    worker = _worker(store, calls, "defer", hard=1)
    for day in range(1, len(names) + 1):
        for _ in range(3):  # looking more often than once in a window changes nothing
            worker.drain()
        assert len(calls) == day
        left = [state for state in states(store, NAME).values() if state != "completed"]
        assert left == ["deferred"] * (len(names) - day)
        with store.read() as connection:
            tried = connection.scalar(select(func.count()).select_from(attempts))
            counted = connection.scalar(select(func.sum(deliveries.c.attempts)))
        assert (tried, counted) == (day, day), "only what was admitted is an attempt"
        clock.advance(DAY)
    assert sorted(calls) == names
