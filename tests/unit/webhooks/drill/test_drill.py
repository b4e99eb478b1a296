"""The drill passes on both databases, leaves nothing behind, and can fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, select

from gunicorn_admission.webhooks.drill import Report, run_drill, stage
from gunicorn_admission.webhooks.fanout import Subscriptions, verdicts
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import audit, deliveries, metadata, revision
from tests.unit.webhooks.pages.test_watch import store_event


def _failed(report: Report) -> set[str]:
    return {check.name for check in report.checks if check.result == "FAIL"}


def test_it_passes_and_sweeps_up_after_itself(any_store: Store) -> None:
    Subscriptions(any_store).create("of-others")
    store_event(any_store, "evt_others")
    report = run_drill(any_store.url.render_as_string(hide_password=False))
    assert not _failed(report), report.as_dict()
    assert len(report.checks) == 11
    with any_store.read() as connection:
        counts = {
            table.name: connection.scalar(select(func.count()).select_from(table))
            for table in metadata.sorted_tables
            if table not in (audit, revision)
        }
        states = connection.scalars(select(deliveries.c.state)).all()
    left = {name: count for name, count in counts.items() if count}
    assert left == {"webhook_event": 1, "webhook_subscription": 1, "webhook_delivery": 1}
    assert states == ["pending"], "nobody else's event was touched"


def test_without_a_url_it_makes_a_store_of_its_own() -> None:
    told = []
    report = run_drill(tell=told.append)
    assert report.passed, report.as_dict()
    assert report.as_dict()["result"] == "PASS"
    assert tuple(told) == report.checks


def _nothing(*_: Any, **__: Any) -> None:
    return None


@pytest.mark.parametrize(
    ("owner", "name", "broken", "expected"),
    [
        (verdicts, "raise_page", _nothing, "right_page"),
        (Subscriptions, "pause", _nothing, "paused_consumer"),
        (Subscriptions, "disable", _nothing, "rollback_and_replay"),
        (stage, "configure", _nothing, "exhausted_ceiling"),
    ],
)
def test_what_is_broken_fails_the_check_that_is_about_it(
    monkeypatch: pytest.MonkeyPatch,
    owner: object,
    name: str,
    broken: Callable[..., None],
    expected: str,
) -> None:
    monkeypatch.setattr(stage, "_PATIENCE", 1.0)
    monkeypatch.setattr(owner, name, broken)
    report = run_drill()
    assert expected in _failed(report)
    assert report.as_dict()["result"] == "FAIL"
