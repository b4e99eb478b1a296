"""One page for each key, then counts; every channel on its own; nothing lost when one fails."""

from __future__ import annotations

import threading

import pytest

from gunicorn_admission.webhooks.pages import (
    CeilingReached,
    Condition,
    Page,
    Pager,
    Severity,
    raise_page,
    resolve_page,
)
from gunicorn_admission.webhooks.store import Store, StoreError
from tests.unit.webhooks.pages.conftest import Clock, Memory

CEILING = CeilingReached(unit="requests", used=5, hard=5, window="day UTC", resets_at=None)


def _page(event_id: str = "evt_1", key: str = "analytics/day/refused", **more: object) -> Page:
    return Page(
        key=key,
        condition=Condition.REFUSED,
        severity=Severity.CRITICAL,
        consumer="analytics",
        source="stripe",
        event_id=event_id,
        ceiling=CEILING,
        **more,  # type: ignore[arg-type]
    )


def _raise(store: Store, page: Page) -> None:
    store.write(lambda connection: raise_page(connection, page, store.now()))


def test_a_page_is_told_once_with_the_first_event(store: Store, channel: Memory) -> None:
    pager = Pager(store, [channel])
    _raise(store, _page("evt_1"))
    assert pager.tick() == 1
    _raise(store, _page("evt_2"))
    assert pager.tick() == 0
    assert channel.told[0].page == _page("evt_1")


def test_what_came_since_is_told_after_the_pause(
    store: Store, channel: Memory, clock: Clock
) -> None:
    pager = Pager(store, [channel])
    _raise(store, _page("evt_1"))
    pager.tick()
    for number in range(37):
        _raise(store, _page(f"evt_{number + 2}"))
    clock.now += channel.repeat
    assert pager.tick() == 1
    assert channel.told[1].count == 38
    assert channel.told[1].page.event_id == "evt_1"
    clock.now += channel.repeat
    assert pager.tick() == 0, "nothing was added"


def test_a_page_is_over_when_its_window_rolls_and_begins_anew(
    store: Store, channel: Memory, clock: Clock
) -> None:
    pager = Pager(store, [channel])
    _raise(store, _page("evt_1", until=clock.micros + 60_000_000))
    pager.tick()
    clock.now += 60
    assert pager.tick() == 1
    assert channel.texts[-1].startswith("RESOLVED ")
    _raise(store, _page("evt_9", until=clock.micros + 60_000_000))
    assert pager.tick() == 1
    told = channel.told[-1]
    assert (told.page.event_id, told.count, told.episode) == ("evt_9", 1, 2)


def test_a_rolled_window_is_not_added_to_even_when_no_pager_ran(
    store: Store, channel: Memory, clock: Clock
) -> None:
    _raise(store, _page("evt_1", until=clock.micros + 60_000_000))
    clock.now += 120
    _raise(store, _page("evt_2"))
    Pager(store, [channel]).tick()
    assert [(notice.page.event_id, notice.count) for notice in channel.told] == [("evt_2", 1)]


def test_a_cause_that_is_gone_is_told_once(store: Store, channel: Memory) -> None:
    pager = Pager(store, [channel])
    _raise(store, _page())
    pager.tick()
    assert store.write(lambda connection: resolve_page(connection, _page().key, store.now()))
    assert not store.write(lambda connection: resolve_page(connection, _page().key, store.now()))
    assert (pager.tick(), pager.tick()) == (1, 0)


def test_a_channel_that_fails_keeps_its_notices_and_holds_up_no_other(
    store: Store, channel: Memory, clock: Clock
) -> None:
    broken = Memory(name="broken", broken=True)
    pager = Pager(store, [broken, channel])
    _raise(store, _page())
    assert pager.tick() == 1
    assert pager.tick() == 0, "a failed one is not tried again at once"
    broken.broken = False
    clock.now += 6
    assert pager.tick() == 1
    assert len(broken.told) == len(channel.told) == 1


def test_a_channel_with_a_bug_silences_no_other(store: Store, channel: Memory) -> None:
    class Bug(Memory):
        def send(self, notice: object) -> None:
            raise KeyError("a bug")

    _raise(store, _page())
    assert Pager(store, [Bug(name="bug"), channel]).tick() == 1


def test_a_channel_that_hangs_holds_up_no_other(store: Store) -> None:
    let_go, told, stop = threading.Event(), threading.Event(), threading.Event()

    class Hanging(Memory):
        def send(self, notice: object) -> None:
            assert let_go.wait(10)

    class Quick(Memory):
        def send(self, notice: object) -> None:
            told.set()

    _raise(store, _page())
    pager = Pager(store, [Hanging(name="hanging"), Quick(name="quick")])
    running = threading.Thread(target=pager.run, args=(stop,), kwargs={"interval": 0.01})
    running.start()
    try:
        assert told.wait(10)
    finally:
        stop.set()
        let_go.set()
        running.join()


def test_a_new_channel_hears_nothing_of_what_was_over_long_ago(
    store: Store, channel: Memory, clock: Clock
) -> None:
    _raise(store, _page())
    assert store.write(lambda connection: resolve_page(connection, _page().key, store.now()))
    clock.now += 86_400
    _raise(store, _page("evt_2", key="analytics/day/deferred"))
    assert Pager(store, [channel]).tick() == 1
    assert channel.told[0].page.event_id == "evt_2"


def test_many_that_tell_at_once_tell_each_page_once(any_store: Store) -> None:
    keys = [f"analytics/day {number}/refused" for number in range(40)]
    for key in keys:
        _raise(any_store, _page(key=key))
    channel, together = Memory(), threading.Barrier(6, timeout=10)
    errors: list[BaseException] = []

    def tell() -> None:
        try:
            pager = Pager(any_store, [channel])
            together.wait()
            while len(channel.told) < len(keys):
                pager.tick()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=tell) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert sorted(notice.page.key for notice in channel.told) == sorted(keys)


def test_pauses_grow_while_a_channel_fails(store: Store, clock: Clock) -> None:
    broken = Memory(broken=True)
    tries = 0

    class Counting(Memory):
        def send(self, notice: object) -> None:
            nonlocal tries
            tries += 1
            broken.send(notice)  # type: ignore[arg-type]

    pager = Pager(store, [Counting()])
    _raise(store, _page())
    for _ in range(120):
        pager.tick()
        clock.now += 5
    assert 4 <= tries <= 10  # in ten minutes: after 5, 10, 20, 40, 80, 160, 300 s


def test_what_a_dead_process_had_taken_is_told_by_the_next(
    store: Store, channel: Memory, clock: Clock
) -> None:
    class Dying(Memory):
        def send(self, notice: object) -> None:
            raise SystemExit

    _raise(store, _page())
    try:
        Pager(store, [Dying()]).tick()
    except SystemExit:
        pass
    pager = Pager(store, [channel])
    assert pager.tick() == 0, "its lease has not run out"
    clock.now += 61
    assert pager.tick() == 1


def test_a_receiver_that_forgets_is_told_again(store: Store, clock: Clock) -> None:
    forgetful = Memory(repeat=60.0, refreshes=True)
    pager = Pager(store, [forgetful])
    _raise(store, _page())
    told = []
    for _ in range(5):
        told.append(pager.tick())
        clock.now += 30
    assert told == [1, 0, 1, 0, 1]


def test_two_pages_do_not_mix(store: Store, channel: Memory) -> None:
    _raise(store, _page("evt_1"))
    _raise(store, _page("evt_1", key="analytics/day/deferred"))
    assert Pager(store, [channel]).tick() == 2


def test_a_page_that_is_rolled_back_never_was(store: Store, channel: Memory) -> None:
    def work(connection: object) -> None:
        raise_page(connection, _page(), store.now())  # type: ignore[arg-type]
        raise RuntimeError

    try:
        store.write(work)
    except RuntimeError:
        pass
    assert Pager(store, [channel]).tick() == 0


def test_a_store_that_is_away_is_looked_for_and_not_all_the_time(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    pauses: list[float] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout or 0.0)
            return len(pauses) > 8

    class Away:
        def now(self) -> int:
            return store.now()

        def write(self, work: object) -> None:
            if len(pauses) < 7:
                raise StoreError("away")

    Pager(Away(), []).run(Stop(), interval=2.0)  # type: ignore[arg-type]
    assert pauses == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 2.0, 2.0]
    assert "pager: StoreError" in caplog.text
