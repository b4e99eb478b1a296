"""The boundaries of the intake: somebody is told when events cannot enter, and when they do."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

import pytest

from gunicorn_admission.webhooks.intake import Intake
from gunicorn_admission.webhooks.pages import ChannelError, Condition, Severity
from gunicorn_admission.webhooks.pages.wording import Notice
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.errors import StoreError
from tests.fanning import WallClock
from tests.intake_calls import github_sent, post, rows
from tests.senders import AT

Make = Callable[..., Intake]

PATIENCE = 10.0


class Told:
    """A channel that hands over what it was told."""

    name = "told"
    repeat = 900.0
    refreshes = False

    def __init__(self) -> None:
        self.notices: queue.Queue[Notice] = queue.Queue()

    def send(self, notice: Notice) -> None:
        self.notices.put(notice)

    def next(self) -> Notice:
        return self.notices.get(timeout=PATIENCE)


class Failing:
    """A store that is away until it is told otherwise."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_away = True

    def write(self, work: Any, *, timeout: float | None = None) -> Any:
        if self.is_away:
            raise StoreError("the disk is full")
        return self._store.write(work, timeout=timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_a_store_that_fails_is_one_critical_page_until_an_event_enters(
    make: Make, store: Store
) -> None:
    told, failing, clock = Told(), Failing(store), WallClock(AT)
    app = make(store=failing, pages=[told], clock=clock)
    for number in range(3):
        assert post(app, "git", github_sent(b"{}", f"d-{number}")).status == 503
    notice = told.next()
    assert notice.page.condition is Condition.UNSTORED
    assert notice.page.severity is Severity.CRITICAL
    assert notice.text.startswith("intake CANNOT STORE git: the store cannot be reached")
    failing.is_away = False
    assert post(app, "git", github_sent(b"{}", "d-9")).status == 200
    clock.advance(60)  # it did not come again
    assert told.next().text.startswith("RESOLVED intake CANNOT STORE git")
    assert told.notices.empty()


def test_events_that_cannot_be_routed_are_the_other_boundary_and_are_not_kept(
    make: Make, store: Store
) -> None:
    class Lost:
        def route(self, connection: object, events: object) -> None:
            raise LookupError("private text")

    told = Told()
    app = make(pages=[told], router=Lost())
    assert post(app, "git", github_sent(b"{}", "d-1")).status == 503
    notice = told.next()
    assert notice.page.condition is Condition.UNPUBLISHED
    assert notice.text.startswith("publication CANNOT PUBLISH git")
    assert "private" not in notice.text
    assert rows(store) == []


def test_anybody_can_post_a_large_body_so_it_wakes_nobody(make: Make) -> None:
    told = Told()
    app = make(pages=[told])
    sent = github_sent(b"x" * (26 * 1024 * 1024), "d-1")
    assert post(app, "git", sent).status == 413
    assert told.next().page.severity is Severity.WARNING


def test_a_forged_request_is_no_page(make: Make) -> None:
    told = Told()
    app = make(pages=[told])
    assert post(app, "git", github_sent(b"{}", "d-1", "another secret")).status == 401
    assert told.notices.empty()


def test_channels_come_from_the_environment(
    make: Make, monkeypatch: pytest.MonkeyPatch, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("GUNICORN_ADMISSION_PAGES", "log; command:true")
    app = make(store=Failing(store))
    post(app, "git", github_sent(b"{}", "d-1"))
    alarm = app.receiver._notes._alarm
    assert [channel.name for channel in alarm.channels] == ["log", "command true"]


def test_a_channel_that_fails_does_not_change_the_answer(make: Make, store: Store) -> None:
    class Broken(Told):
        def send(self, notice: Notice) -> None:
            super().send(notice)
            raise ChannelError("away")

    told = Broken()
    app = make(store=Failing(store), pages=[told])
    assert post(app, "git", github_sent(b"{}", "d-1")).status == 503
    told.next()
