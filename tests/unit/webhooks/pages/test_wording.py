"""From the first line alone: consumer, event, ceiling, and whether it was refused or deferred."""

from __future__ import annotations

import pytest

from gunicorn_admission.webhooks.pages import CeilingReached, Condition, Page
from gunicorn_admission.webhooks.pages.wording import Notice

FIRST = 1_796_047_320_000_000  # 2026-11-30T14:02Z
CEILING = CeilingReached(
    unit="requests",
    used=500,
    hard=500,
    window="day America/New_York",
    resets_at=1_796_101_200_000_000,
)


def _page(condition: Condition, **more: object) -> Page:
    return Page(
        key="k",
        condition=condition,
        consumer="usage-analytics",
        source="stripe",
        event_id="evt_01892",
        **more,  # type: ignore[arg-type]
    )


def _notice(page: Page, **more: object) -> Notice:
    return Notice(page=page, episode=1, first_at=FIRST, last_at=FIRST, **{"count": 1, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("condition", "verb"),
    [
        (Condition.REFUSED, "REFUSED"),
        (Condition.DEFERRED, "DEFERRED"),
        (Condition.REVIEW, "HELD FOR REVIEW"),
    ],
)
def test_a_ceiling_page_names_all_that_an_operator_must_know(
    condition: Condition, verb: str
) -> None:
    text = _notice(_page(condition, ceiling=CEILING)).text
    assert text == (
        f"usage-analytics {verb} stripe/evt_01892: 500/500 requests "
        "(hard, day America/New_York, resets 2026-12-01T05:00Z)"
    )


def test_counts_lags_and_the_runbook_follow_the_first_line() -> None:
    page = _page(Condition.DEFERRED, ceiling=CEILING, runbook="https://wiki/analytics")
    text = _notice(page, count=38, lags={"entitlements": 0.4}).text
    assert text.endswith(
        "; 37 more deferred since 2026-11-30T14:02Z; entitlements lags 0.4 s; "
        "see https://wiki/analytics"
    )


def test_a_soft_ceiling_says_that_work_goes_on_and_where_the_hard_one_is() -> None:
    ceiling = CeilingReached(unit="tokens", used=81, hard=100, soft=80, window="rolling 1h")
    text = _notice(_page(Condition.OVER_SOFT, ceiling=ceiling)).text
    assert text == (
        "usage-analytics ADMITTED OVER SOFT CEILING stripe/evt_01892: "
        "81/80 tokens (soft, hard is 100, rolling 1h)"
    )


def test_a_page_of_the_intake_names_the_source_and_not_a_consumer() -> None:
    page = Page(key="k", condition=Condition.UNSTORED, source="github", reason="timeout")
    assert _notice(page).text == "intake CANNOT STORE github: timeout"


def test_what_is_over_says_so_first() -> None:
    text = _notice(_page(Condition.LAGGING), count=3, resolved_at=FIRST + 60_000_000).text
    assert text.startswith("RESOLVED usage-analytics LAGS stripe/evt_01892")
    assert text.endswith("over at 2026-11-30T14:03Z")


@pytest.mark.parametrize("condition", list(Condition))
def test_every_condition_has_words(condition: Condition) -> None:
    first, second = _notice(_page(condition)).text, _notice(_page(condition), count=2).text
    assert "usage-analytics " in first
    assert second != first and "1 more " in second
