"""Without a store: told once, then from time to time, and when it is over."""

from __future__ import annotations

import threading

from gunicorn_admission.webhooks.pages import Alarm, Condition, Page
from gunicorn_admission.webhooks.pages.wording import Notice
from tests.unit.webhooks.pages.conftest import Clock, Memory

PAGE = Page(key="intake/unstored/github", condition=Condition.UNSTORED, source="github")


class Still(Alarm):
    """An alarm whose thread is never started, so that the test ticks."""

    def _start(self) -> None:
        pass


def test_told_once_then_counted(channel: Memory, clock: Clock) -> None:
    alarm = Still([channel], clock=clock)
    for _ in range(5):
        alarm.raise_page(PAGE)
        alarm.tick()
    assert len(channel.told) == 1
    clock.now += channel.repeat
    alarm.tick()
    assert channel.told[-1].count == 5


def test_over_is_told_once_and_then_forgotten(channel: Memory, clock: Clock) -> None:
    alarm = Still([channel], clock=clock)
    alarm.raise_page(PAGE)
    alarm.tick()
    alarm.resolve_page(PAGE.key)
    assert (alarm.tick(), alarm.tick()) == (1, 0)
    assert channel.texts[-1].startswith("RESOLVED intake CANNOT STORE github")
    alarm.raise_page(PAGE)
    assert alarm.tick() == 1, "it came back"


def test_what_nobody_was_told_of_needs_no_end(channel: Memory, clock: Clock) -> None:
    alarm = Still([channel], clock=clock)
    alarm.raise_page(PAGE)
    alarm.resolve_page(PAGE.key)
    assert alarm.tick() == 0


def test_a_channel_that_fails_is_tried_again(channel: Memory, clock: Clock) -> None:
    alarm = Still([channel], clock=clock)
    channel.broken = True
    alarm.raise_page(PAGE)
    assert alarm.tick() == 0
    channel.broken = False
    clock.now += 10
    assert alarm.tick() == 1


def test_keys_are_bounded(channel: Memory, clock: Clock) -> None:
    alarm = Still([channel], clock=clock)
    for number in range(300):
        alarm.raise_page(Page(key=str(number), condition=Condition.UNSTORED))
    assert alarm.tick() == 256


def test_its_own_thread_tells_and_raising_does_not_wait_for_a_channel() -> None:
    entered, let_go, told = threading.Event(), threading.Event(), threading.Event()

    class Slow(Memory):
        def send(self, notice: Notice) -> None:
            entered.set()
            assert let_go.wait(10)
            told.set()

    alarm = Alarm([Slow()])
    alarm.raise_page(PAGE)
    assert entered.wait(10)
    alarm.raise_page(PAGE)  # returns although the channel hangs
    let_go.set()
    assert told.wait(10)
