"""Pages about what a gate answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gunicorn_admission.webhooks.gates.decision import Decision, Kind, Reason, Standing
from gunicorn_admission.webhooks.pages.page import CeilingReached, Condition, Page, Severity

__all__ = ["pages_about"]

_CONDITIONS = {
    Kind.REFUSED: Condition.REFUSED,
    Kind.DEFERRED: Condition.DEFERRED,
    Kind.REVIEW: Condition.REVIEW,
}

_REASONS = {
    Reason.EXCEEDS_CEILING: "its cost alone is more than the ceiling",
    Reason.RETENTION: "the window resets after the event is thrown away",
    Reason.REJECTED: "rejected by an operator",
}

#: A ceiling over a sliding window is calm again when nothing met it for so long.
_CALM: Final = 900_000_000


def pages_about(
    decision: Decision,
    *,
    severity: Severity | None = Severity.WARNING,
    runbook: str | None = None,
) -> Iterator[Page]:
    """
    Yield the pages that a new answer is worth, usually none.

    An answer that was given before is worth none: a retry repeats no noise.

    Args:
        severity: What it means that this consumer does not get its work done; soft ceilings are
            never more than a warning. ``None`` makes no page.
        runbook: Where to read on.
    """
    if severity is None or not decision.is_new:
        return
    condition = _CONDITIONS.get(decision.kind)
    if condition is not None and decision.standing is not None:
        yield _page(decision, condition, decision.standing, severity, runbook)
    for standing in decision.crossed_soft:
        lesser = Severity.INFO if severity is Severity.INFO else Severity.WARNING
        yield _page(decision, Condition.OVER_SOFT, standing, lesser, runbook)


def _page(
    decision: Decision,
    condition: Condition,
    standing: Standing,
    severity: Severity,
    runbook: str | None,
) -> Page:
    is_soft = condition is Condition.OVER_SOFT
    reason = None if is_soft or decision.reason is None else _REASONS.get(decision.reason)
    key, until = [decision.consumer, standing.unit, standing.span], standing.resets_at
    if not standing.span.startswith("rolling"):
        key.append(standing.window)
    elif until is not None:
        until += _CALM  # room comes back bit by bit, and each bit is used up at once
    return Page(
        key="/".join((*key, condition.value)),
        condition=condition,
        severity=severity,
        consumer=decision.consumer,
        source=decision.source,
        event_id=decision.event_id,
        ceiling=CeilingReached(
            unit=standing.unit,
            used=standing.used,
            hard=standing.hard,
            soft=standing.soft if is_soft else None,
            window=standing.span,
            resets_at=standing.resets_at,
        ),
        reason=reason,
        runbook=runbook,
        until=until,
    )
