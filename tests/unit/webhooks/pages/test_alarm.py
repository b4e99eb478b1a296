"""Without a store: told once, then from time to time, and when it is over."""

from __future__ import annotations

import threading

from attrs import evolve

from gunicorn_admission.webhooks.pages import Alarm, Condition, Page, Severity
from gunicorn_admission.webhooks.pages.wording import Notice
from tests.unit.webhooks.pages.conftest import Clock, Memory

PAGE = Page(key="intake/unstored/github", condition=Condition.UNSTORED, source="github")


class Still(Alarm):
    """An alarm whose thread is never started, so that the test ticks."""

    def _start(self, teller: object) -> None:
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
    assert alarm.tick() == 0, "it may come again"
    clock.now += 60
    assert (alarm.tick(), alarm.tick()) == (1, 0)
    assert channel.texts[-1].startswith("RESOLVED intake CANNOT STORE github")
    alarm.raise_page(PAGE)
    assert alarm.tick() == 1, "it came back"


def test_what_comes_and_goes_is_one_page(channel: Memory, clock: Clock) -> None:
    alarm = Still([channel], clock=clock)
    for _ in range(30):
        alarm.raise_page(PAGE)
        alarm.tick()
        alarm.resolve_page(PAGE.key)
        alarm.tick()
        clock.now += 10
    assert [notice.count for notice in channel.told] == [1]
    clock.now += 60
    alarm.tick()
    assert (channel.told[-1].count, channel.told[-1].resolved_at is not None) == (30, True)


def test_what_grows_more_urgent_is_told_anew(channel: Memory, clock: Clock) -> None:
    alarm = Still([channel], clock=clock)
    for severity in (Severity.WARNING, Severity.CRITICAL, Severity.WARNING):
        alarm.raise_page(evolve(PAGE, severity=severity))
        alarm.tick()
    assert [notice.page.severity for notice in channel.told] == [
        Severity.WARNING,
        Severity.CRITICAL,
    ]


def test_what_comes_back_while_its_end_is_told_is_told_anew(clock: Clock) -> None:
    class Late(Memory):
        def send(self, notice: Notice) -> None:
            super().send(notice)
            if notice.resolved_at is not None and len(self.told) == 2:
                alarm.raise_page(PAGE)

    channel = Late()
    alarm = Still([channel], clock=clock)
    alarm.raise_page(PAGE)
    alarm.tick()
    alarm.resolve_page(PAGE.key)
    clock.now += 60
    assert (alarm.tick(), alarm.tick()) == (1, 1)
    assert [text.startswith("RESOLVED") for text in channel.texts] == [False, True, False]


def test_an_end_that_is_not_taken_is_tried_again_and_not_all_the_time(
    channel: Memory, clock: Clock
) -> None:
    alarm = Still([channel], clock=clock)
    alarm.raise_page(PAGE)
    alarm.tick()
    alarm.resolve_page(PAGE.key)
    clock.now += 60
    channel.broken = True
    alarm.tick()
    channel.broken = False
    assert alarm.tick() == 0
    clock.now += 10
    assert alarm.tick() == 1


def test_a_channel_with_a_bug_silences_no_other(channel: Memory, clock: Clock) -> None:
    class Bug(Memory):
        def send(self, notice: Notice) -> None:
            raise KeyError("a bug")

    alarm = Still([Bug(), channel], clock=clock)
    alarm.raise_page(PAGE)
    assert alarm.tick() == 1


def test_what_nobody_was_told_of_needs_no_end(channel: Memory, clock: Clock) -> None:
    alarm = Still([channel], clock=clock)
    alarm.raise_page(PAGE)
    alarm.resolve_page(PAGE.key)
    clock.now += 60
    assert (alarm.tick(), alarm.tick()) == (0, 0)


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

    class Quick(Memory):
        def send(self, notice: Notice) -> None:
            other_told.set()

    other_told = threading.Event()
    alarm = Alarm([Slow(), Quick()])
    alarm.raise_page(PAGE)
    assert entered.wait(10)
    assert other_told.wait(10), "one that hangs holds up no other"
    alarm.raise_page(PAGE)  # returns although the channel hangs
    let_go.set()
    assert told.wait(10)
