"""From a gate's answer to the page about it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from gunicorn_admission.webhooks.gates.decision import Decision, Kind, Reason, Standing
from gunicorn_admission.webhooks.pages import Condition, Pager, Severity, pages_about, raise_page
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import pages
from tests.unit.webhooks.pages.conftest import Clock, Memory


def _standing(**more: Any) -> Standing:
    values: dict[str, Any] = {
        "ceiling": "500 requests per day UTC",
        "unit": "requests",
        "span": "day UTC",
        "zone": "UTC",
        "window": "2026-11-30",
        "starts_at": 0,
        "resets_at": 1_796_083_200_000_000,
        "hard": 500,
        "soft": None,
        "reserved": 0,
        "settled": 500,
        **more,
    }
    return Standing(**values)


def _decision(kind: Kind, event_id: str = "evt_1", **more: Any) -> Decision:
    return Decision(kind=kind, consumer="analytics", source="stripe", event_id=event_id, **more)


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        (Kind.REFUSED, Condition.REFUSED),
        (Kind.DEFERRED, Condition.DEFERRED),
        (Kind.REVIEW, Condition.REVIEW),
    ],
)
def test_a_ceiling_s_answer_is_a_page(kind: Kind, condition: Condition) -> None:
    decision = _decision(kind, standing=_standing(), reason=Reason.CEILING_REACHED)
    (page,) = pages_about(decision, severity=Severity.CRITICAL, runbook="https://wiki")
    assert page.condition is condition
    assert page.key == f"analytics/requests/day UTC/2026-11-30/{condition.value}"
    assert (page.event_id, page.severity, page.runbook) == (
        "evt_1",
        Severity.CRITICAL,
        "https://wiki",
    )
    assert page.ceiling is not None and (page.ceiling.used, page.ceiling.hard) == (500, 500)


@pytest.mark.parametrize("kind", [Kind.ADMITTED, Kind.DEDUPLICATED, Kind.IN_PROGRESS])
def test_what_is_no_refusal_is_no_page(kind: Kind) -> None:
    assert not list(pages_about(_decision(kind)))


def test_an_answer_given_before_is_no_page() -> None:
    decision = _decision(Kind.REFUSED, standing=_standing(), is_new=False)
    assert not list(pages_about(decision))


def test_a_consumer_whose_refusals_threaten_nothing_makes_no_page() -> None:
    decision = _decision(Kind.REFUSED, standing=_standing(), reason=Reason.CEILING_REACHED)
    assert not list(pages_about(decision, severity=None))


def test_the_first_over_a_soft_ceiling_is_a_warning_even_where_refusals_are_critical() -> None:
    standing = _standing(soft=400, settled=401)
    decision = _decision(Kind.ADMITTED, over_soft=(standing,), crossed_soft=(standing,))
    (page,) = pages_about(decision, severity=Severity.CRITICAL)
    assert (page.condition, page.severity) == (Condition.OVER_SOFT, Severity.WARNING)


def test_a_cost_that_can_never_fit_says_so() -> None:
    decision = _decision(Kind.REFUSED, standing=_standing(), reason=Reason.EXCEEDS_CEILING)
    (page,) = pages_about(decision)
    assert page.reason == "its cost alone is more than the ceiling"


def test_a_sliding_window_is_one_page_while_it_is_met_again_and_again(
    store: Store, channel: Memory, clock: Clock
) -> None:
    pager = Pager(store, [channel])
    for minute in range(20):
        standing = _standing(
            span="rolling 1h",
            zone=None,
            window=f"slice {minute}",
            resets_at=clock.micros + 60_000_000,
        )
        decision = _decision(Kind.DEFERRED, f"evt_{minute}", standing=standing)
        for page in pages_about(decision):
            store.write(lambda connection, page=page: raise_page(connection, page, store.now()))
        pager.tick()
        clock.now += 60
    assert [notice.page.event_id for notice in channel.told] == ["evt_0", "evt_0"]
    with store.read() as connection:
        assert connection.execute(select(pages.c.count)).scalars().all() == [20]
    clock.now += 960
    pager.tick()
    assert channel.texts[-1].startswith("RESOLVED ")
