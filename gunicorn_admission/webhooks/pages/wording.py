"""
The words of a page.

The test for them is that somebody at three in the morning can name the consumer, the event, the
ceiling and whether work was refused or deferred, from the first line alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from attrs import frozen

from gunicorn_admission.webhooks.pages.page import CeilingReached, Condition, Page

__all__ = ["Notice", "clock_time", "say"]

_VERB = {
    Condition.UNSTORED: "CANNOT STORE",
    Condition.UNPUBLISHED: "CANNOT PUBLISH",
    Condition.REFUSED: "REFUSED",
    Condition.DEFERRED: "DEFERRED",
    Condition.REVIEW: "HELD FOR REVIEW",
    Condition.OVER_SOFT: "ADMITTED OVER SOFT CEILING",
    Condition.FAILING: "FAILS",
    Condition.DEAD: "DEAD-LETTERED",
    Condition.LAGGING: "LAGS",
}

_PARTICIPLE = {
    Condition.UNSTORED: "answered 503",
    Condition.UNPUBLISHED: "answered 503",
    Condition.REFUSED: "refused",
    Condition.DEFERRED: "deferred",
    Condition.REVIEW: "held",
    Condition.OVER_SOFT: "admitted",
    Condition.FAILING: "failed",
    Condition.DEAD: "dead-lettered",
    Condition.LAGGING: "seen late",
}


@frozen(kw_only=True)
class Notice:
    """
    A page as it is told now.

    Attributes:
        page: What went wrong.
        episode: Which time that it came up.
        count: How often it happened in this episode, the first time included.
        first_at: When it began, in microseconds since the epoch.
        last_at: When it was last seen.
        resolved_at: When it was over, or ``None`` while it goes on.
        lags: Age of the oldest unfinished event of each other consumer, in seconds.
    """

    page: Page
    episode: int
    count: int
    first_at: int
    last_at: int
    resolved_at: int | None = None
    lags: Mapping[str, float] = {}

    @property
    def text(self) -> str:
        """The page in one line."""
        return say(self)


def say(notice: Notice) -> str:
    """Return the page in one line: who, what, which event, which ceiling, and then the rest."""
    page = notice.page
    who = page.consumer or page.condition.boundary.value
    line = f"{who} {_VERB[page.condition]}{_of_event(page)}"
    about = [text for text in (_ceiling(page.ceiling), page.reason) if text]
    if about:
        line += ": " + ", ".join(about)
    parts = [line]
    if notice.count > 1:
        parts.append(
            f"{notice.count - 1} more {_PARTICIPLE[page.condition]} since "
            f"{clock_time(notice.first_at)}"
        )
    if notice.resolved_at is not None:
        return "RESOLVED " + "; ".join([*parts, f"over at {clock_time(notice.resolved_at)}"])
    parts += [f"{name} lags {lag:.1f} s" for name, lag in notice.lags.items()]
    if page.runbook:
        parts.append(f"see {page.runbook}")
    return "; ".join(parts)


def _of_event(page: Page) -> str:
    if page.event_id is None:
        return "" if page.source is None else f" {page.source}"
    return f" {page.source}/{page.event_id}"


def _ceiling(ceiling: CeilingReached | None) -> str | None:
    if ceiling is None:
        return None
    is_soft = ceiling.soft is not None
    bound = ceiling.soft if ceiling.soft is not None else ceiling.hard
    kind = "hard"
    if is_soft:
        kind = "soft" if ceiling.hard is None else f"soft, hard is {ceiling.hard}"
    resets = "" if ceiling.resets_at is None else f", resets {clock_time(ceiling.resets_at)}"
    return f"{ceiling.used}/{bound} {ceiling.unit} ({kind}, {ceiling.window}{resets})"


def clock_time(at: int) -> str:
    """Return microseconds since the epoch as people in every zone read them alike."""
    return datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y-%m-%dT%H:%MZ")
