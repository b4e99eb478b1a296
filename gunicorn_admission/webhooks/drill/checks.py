"""
What a drill tries, in order; each check builds on what the ones before it left.

A check returns what it saw, in words, and raises :class:`Failed` where that is not what must be.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Final

from sqlalchemy import func, select

from gunicorn_admission.webhooks.drill.stage import ALLOWANCE, Failed, Stage
from gunicorn_admission.webhooks.fanout import Mode
from gunicorn_admission.webhooks.fanout.replay import replay
from gunicorn_admission.webhooks.fanout.selection import Selection
from gunicorn_admission.webhooks.gates.audit import audit_ledger
from gunicorn_admission.webhooks.pages.read import read_pages
from gunicorn_admission.webhooks.pages.wording import Notice
from gunicorn_admission.webhooks.store.schema import events

__all__ = ["CHECKS"]

_COUNTERS: Final = ("admitted", "completed", "deduplicated", "refused")


def normal_event(stage: Stage) -> str:
    """A normal event has its effect at every consumer."""
    ids = stage.send_new(1)
    for name in stage.names:
        stage.until_done(name, ids)
    return f"{ids[0]} was answered 200 and completed by {_names(stage)}"


def forged_event(stage: Stage) -> str:
    """What was not signed by the sender does not enter."""
    event_id = stage.new_id()
    status = stage.send(event_id, secret="another secret")
    if status != 401 or _stored(stage, event_id):
        raise Failed(
            f"{event_id} was answered {status} and stored {_stored(stage, event_id)} times"
        )
    return f"{event_id} was answered 401 and not stored"


def duplicate_event(stage: Stage) -> str:
    """The same event five times at once is one event with one effect."""
    (event_id,) = stage.send_new(1)
    statuses: list[int] = []
    together = threading.Barrier(4)

    def again() -> None:
        together.wait()
        statuses.append(stage.send(event_id))

    threads = [threading.Thread(target=again) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stage.until_idle(stage.names)
    if statuses != [200] * 4 or _stored(stage, event_id) != 1:
        raise Failed(f"answered {statuses}, stored {_stored(stage, event_id)} times")
    for name in stage.names:
        times = stage.effects(name).count(event_id)
        if times != 1:
            raise Failed(f"{name} had the effect of {event_id} {times} times")
    return f"{event_id} came 5 times, was answered 200 each time, and had its effects once"


def paused_consumer(stage: Stage) -> str:
    """While analytics is paused, entitlements advances and nothing is dropped."""
    stage.subscriptions.pause(stage.analytics)
    ids = stage.send_new(3)
    stage.until_done(stage.entitlements, ids)
    waiting = stage.statistics(stage.analytics).waiting
    done = set(ids) & set(stage.effects(stage.analytics))
    if waiting != len(ids) or done:
        raise Failed(f"{stage.analytics} has {waiting} waiting and did {len(done)} while paused")
    stage.subscriptions.resume(stage.analytics)
    stage.until_done(stage.analytics, ids)
    _once(stage, stage.analytics)
    return f"{stage.entitlements} completed {len(ids)} meanwhile; after it {stage.analytics} did"


def exhausted_ceiling(stage: Stage) -> str:
    """Past its allowance analytics refuses, by name, and entitlements advances."""
    left = ALLOWANCE - len(stage.effects(stage.analytics))
    ids = stage.send_new(left + 2)
    stage.until_done(stage.entitlements, ids)
    stage.until_idle([stage.analytics])
    done, refused = len(stage.effects(stage.analytics)), _refusals(stage)
    if done != ALLOWANCE or refused != 2:
        raise Failed(
            f"{stage.analytics} completed {done} of {ALLOWANCE} and refused {refused} of 2"
        )
    return f"{stage.analytics} completed {done} of {ALLOWANCE} allowed, and refused 2"


def durable_refusal(stage: Stage) -> str:
    """A refused event that comes again gets the same answer, and spends and says nothing."""
    page = _pages(stage)[0]
    event_id = page.page.event_id
    assert event_id is not None  # a page of a ceiling has one
    status = stage.send(event_id)
    replay(
        stage.store,
        stage.analytics,
        Selection(events=[(stage.source, event_id)]),
        actor="drill",
    )
    stage.until_idle([stage.analytics])
    after = _pages(stage)
    if status != 200 or _refusals(stage) != 2 or [each.count for each in after] != [page.count]:
        raise Failed(f"answered {status}, {_refusals(stage)} refusals, pages {_texts(stage)}")
    return f"{event_id} came again and was replayed: still 2 refusals and one page"


def right_page(stage: Stage) -> str:
    """One page fired: it names consumer, event, ceiling and decision, and none other fired."""
    notices = _pages(stage)
    if len(notices) != 1:
        raise Failed(f"{len(notices)} pages: {_texts(stage)}")
    text, event_id = notices[0].text, notices[0].page.event_id
    wanted = (
        stage.analytics,
        "REFUSED",
        f"{stage.source}/{event_id}",
        f"{ALLOWANCE}/{ALLOWANCE} requests",
    )
    missing = [part for part in wanted if part not in text]
    if missing:
        raise Failed(f"{text!r} does not name {missing}")
    return text


def slow_handler(stage: Stage) -> str:
    """While one handler hangs, the other consumers advance."""
    stage.invoices_may_go_on.clear()
    try:
        ids = stage.send_new(3)
        stage.until(f"{stage.invoices} to be held", stage.invoices_are_held.is_set)
        stage.until_done(stage.entitlements, ids)
        overtaken = set(ids) - set(stage.effects(stage.invoices))
    finally:
        stage.invoices_may_go_on.set()
    stage.until_done(stage.invoices, ids)
    _once(stage, stage.invoices)
    if not overtaken:
        raise Failed(f"{stage.invoices} was not held up, so this proves nothing")
    return f"{stage.entitlements} completed 3 while {stage.invoices} hung; it did them afterwards"


def rollback_and_replay(stage: Stage) -> str:
    """Disabled, enabled and replayed from the beginning, a consumer repeats no effect."""
    before = Counter(stage.effects(stage.invoices))
    stage.subscriptions.disable(stage.invoices)
    late = stage.send_new(2)
    stage.until_done(stage.entitlements, late)
    if set(late) & set(stage.effects(stage.invoices)):
        raise Failed(f"{stage.invoices} worked while it was disabled")
    stage.subscriptions.set_mode(stage.invoices, Mode.ACTIVE)
    replayed = replay(stage.store, stage.invoices, Selection(source=stage.source), actor="drill")
    stage.until_done(stage.invoices, late)
    stage.until_idle([stage.invoices])
    after = Counter(stage.effects(stage.invoices))
    if after != before + Counter(late):
        raise Failed(f"{(after - before).total()} effects instead of {len(late)}")
    return (
        f"{replayed.completed} completed events were replayed without effect, {len(late)} caught up"
    )


def counters(stage: Stage) -> str:
    """Admitted, completed, deduplicated and refused add up for each consumer."""
    said = []
    for name in stage.names:
        counted, effects = stage.statistics(name).counters, len(stage.effects(name))
        said.append(f"{name} " + " ".join(f"{each} {counted[each]}" for each in _COUNTERS))
        if counted["completed"] != effects or counted["admitted"] != effects:
            raise Failed(f"{said[-1]}, but had {effects} effects")
        if (counted["deduplicated"] > 0) is not (name == stage.invoices):
            raise Failed(f"{said[-1]}; only what was replayed is a duplicate")
        if (counted["refused"] > 0) is not (name == stage.analytics):
            raise Failed(f"{said[-1]}; only {stage.analytics} has a ceiling")
    return "; ".join(said)


def ledger_adds_up(stage: Stage) -> str:
    """The counters of the gates are the sums of their entries, and nothing leaked."""
    with stage.store.read() as connection:
        found = audit_ledger(connection, now=stage.store.now(), consumer=stage.analytics)
    if found:
        raise Failed("; ".join(each.detail for each in found))
    return "no drift, no leaked reservation"


#: In this order.
CHECKS: Final[tuple[Callable[[Stage], str], ...]] = (
    normal_event,
    forged_event,
    duplicate_event,
    paused_consumer,
    exhausted_ceiling,
    durable_refusal,
    right_page,
    slow_handler,
    rollback_and_replay,
    counters,
    ledger_adds_up,
)


def _pages(stage: Stage) -> list[Notice]:
    """Return the pages about the consumers of the drill."""
    with stage.store.read() as connection:
        return read_pages(connection, stage.names)


def _texts(stage: Stage) -> list[str]:
    return [notice.text for notice in _pages(stage)]


def _refusals(stage: Stage) -> int:
    return stage.statistics(stage.analytics).counters["refused"]


def _names(stage: Stage) -> str:
    return ", ".join(stage.names)


def _stored(stage: Stage, event_id: str) -> int:
    with stage.store.read() as connection:
        return (
            connection.scalar(
                select(func.count())
                .select_from(events)
                .where(events.c.source == stage.source, events.c.event_id == event_id)
            )
            or 0
        )


def _once(stage: Stage, name: str) -> None:
    twice = [event_id for event_id, times in Counter(stage.effects(name)).items() if times > 1]
    if twice:
        raise Failed(f"{name} had the effect of {twice} more than once")
