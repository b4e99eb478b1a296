"""What is counted and logged about requests: never a secret, never a part of a body."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from gunicorn_admission.webhooks.intake.answer import Result
from gunicorn_admission.webhooks.intake.complaints import Complaints
from gunicorn_admission.webhooks.intake.inbox import Kept, NotRouted
from gunicorn_admission.webhooks.intake.sources import Ready
from gunicorn_admission.webhooks.metrics import Metrics
from gunicorn_admission.webhooks.pages import Alarm, Condition, Page, Severity
from gunicorn_admission.webhooks.providers import Refused, Verified

__all__ = ["Notes"]

#: What keeps genuine events out, in words that hold nothing of a request. It is a page: a sender
#: gives up after some retries, and some have none.
_PAGED: Final = {
    Result.LATE: "not committed within the sender's deadline",
    Result.UNAVAILABLE: "the store cannot be reached",
    Result.ERROR: "an error of the intake",
    Result.TOO_LARGE: "a body is larger than max_body of the source",
}


class Notes:
    """
    Counts and logs.

    Args:
        metrics: Counts.
        monotonic: Seconds, to bound how often a line is written.
        alarm: Told when genuine events may not enter, and when they do again.

    Thread safety: may be called from any thread.
    """

    def __init__(self, metrics: Metrics, monotonic: Callable[[], float], alarm: Alarm) -> None:
        self._metrics = metrics
        self._alarm = alarm
        self._complaints = Complaints(monotonic=monotonic)

    def ended(self, source: str, result: Result) -> None:
        """A request was answered."""
        self._metrics.count("intake_requests", source, result.value)

    def refused(
        self,
        ready: Ready,
        refused: Refused,
        body: bytes,
        environ: Mapping[str, Any],
        *,
        ours: bool,
    ) -> None:
        """
        A request was not believed.

        Args:
            ready: Its source.
            refused: Why.
            body: Of which length and hash are logged.
            environ: Of WSGI.
            ours: Whether that is our own fault, so that it may be genuine.
        """
        source, reason = ready.source, refused.reason
        self._metrics.count("verify_failures", source.name, reason.value)
        if refused.age is not None and source.provider.facts.retries.signed_anew:
            self._metrics.gauge("clock_skew", refused.age, source.name)
        parts = [
            reason.value,
            f"header {refused.header}" if refused.header else "",
            f"age {refused.age:.0f} s" if refused.age is not None else "",
            # What tells whether a proxy changed the body, and shows nothing of it.
            f"{len(body)} bytes with SHA-256 {hashlib.sha256(body).hexdigest()[:16]}",
            f"encoding {_shown(environ, 'HTTP_CONTENT_ENCODING')}",
            f"type {_shown(environ, 'CONTENT_TYPE')}",
        ]
        level = logging.ERROR if ours else logging.WARNING
        verb = "cannot be verified" if ours else "refused"
        about = ", ".join(part for part in parts if part)
        if ours:
            self._alarm.raise_page(_page(Condition.UNSTORED, source.name, reason.value))
        kind = (source.name, reason.value)
        self._complaints.say(level, kind, f"{source.name} {verb}: {about}")

    def reused(self, source: str) -> None:
        """What a sender signs in place of the body came again with another body."""
        self._metrics.count("verify_failures", source, "nonce_reused")
        about = (
            f"{source} refused: what is signed in place of the body came with another one before"
        )
        self._complaints.say(logging.WARNING, (source, "nonce_reused"), about)

    def genuine(self, ready: Ready, verified: Verified, now: float) -> None:
        """Note what a genuine request tells about clocks and keys."""
        source = ready.source
        if verified.timestamp is not None and source.provider.facts.retries.signed_anew:
            self._metrics.gauge("clock_skew", now - verified.timestamp, source.name)
        end = ready.secrets[verified.secret].not_after
        if end is not None:
            self._metrics.count("secret_old_key_used", source.name)
            key_id, hours = ready.key_ids[verified.secret], (end - now) / 3600
            self._complaints.say(
                logging.WARNING,
                (source.name, "old key", key_id),
                f"{source.name} signs with the old secret {key_id!r}, which ends in {hours:.1f} h",
            )

    def kept(self, source: str, kept: Kept, seconds: float) -> None:
        """Events were committed, which took so many seconds."""
        self._metrics.observe("commit", seconds)
        for condition in (Condition.UNSTORED, Condition.UNPUBLISHED):
            self._alarm.resolve_page(_key(condition, source))
        for key, number in (
            ("intake_events", kept.stored),
            ("intake_duplicates", kept.duplicates),
            ("id_conflicts", kept.conflicts),
        ):
            if number:
                self._metrics.count(key, source, by=number)
        if kept.conflicts:
            about = f"{source}: an id came again with other bytes; the first ones are kept"
            self._complaints.say(logging.WARNING, (source, "conflict"), about)

    def failed(
        self, level: int, result: Result, source: str, about: str, error: Exception | None = None
    ) -> None:
        """A request was not taken, for a reason other than its signature."""
        if isinstance(error, NotRouted):
            self._alarm.raise_page(_page(Condition.UNPUBLISHED, source, about))
        elif result in _PAGED:
            # Anybody may post a large body: that wakes nobody.
            severity = Severity.WARNING if result is Result.TOO_LARGE else Severity.CRITICAL
            self._alarm.raise_page(_page(Condition.UNSTORED, source, _PAGED[result], severity))
        cause = getattr(error, "orig", None)  # a driver's own text has no parameters in it
        if cause is not None:
            about += f": {str(cause).strip().splitlines()[0] if str(cause).strip() else ''}"
        self._complaints.say(level, (source, result.value), f"{source} {result.value}: {about}")


def _shown(environ: Mapping[str, Any], name: str) -> str:
    """A header's value for the log: short, and nothing that breaks a line."""
    text = str(environ.get(name) or "none")[:64]
    return text if text.isascii() and text.isprintable() else "unprintable"


def _key(condition: Condition, source: str) -> str:
    return f"intake/{condition.value}/{source}"


def _page(
    condition: Condition, source: str, reason: str, severity: Severity = Severity.CRITICAL
) -> Page:
    return Page(
        key=_key(condition, source),
        condition=condition,
        severity=severity,
        source=source,
        reason=reason,
    )
