"""What a claim writes: the new state of each row that it took in hand."""

from __future__ import annotations

from collections import Counter
from random import SystemRandom
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, update

from gunicorn_admission.webhooks.fanout.consumers import Consumer
from gunicorn_admission.webhooks.fanout.retry import RetryPolicy
from gunicorn_admission.webhooks.fanout.states import FINISHED, NEVER, State
from gunicorn_admission.webhooks.gates import Decision, Kind, Ledger
from gunicorn_admission.webhooks.pages import Severity, pages_about, raise_page
from gunicorn_admission.webhooks.store.schema import attempts, deliveries

__all__ = ["Verdicts", "in_words"]

_STATES: Final = {
    Kind.DEDUPLICATED: State.COMPLETED,
    Kind.IN_PROGRESS: State.PENDING,
    Kind.REFUSED: State.REFUSED,
    Kind.DEFERRED: State.DEFERRED,
    Kind.REVIEW: State.REVIEW,
}
_LONGEST: Final = 500
_RANDOM: Final = SystemRandom()


def in_words(error: BaseException) -> str:
    """Return an error as operators see it: its type and message, cut and on one line."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class Verdicts:
    """
    Collects what is decided about the rows of one claim, and writes it at once.

    Thread safety: of one transaction.
    """

    def __init__(
        self,
        connection: Connection,
        ledger: Ledger,
        consumer: Consumer,
        subscription: Row[Any],
        now: int,
    ) -> None:
        self.connection = connection
        self.consumer = consumer
        self.subscription = subscription
        self.now = now
        self.retry = RetryPolicy.of(subscription.retry)
        self.counts: Counter[str] = Counter()
        self._ledger = ledger
        self._states: list[dict[str, Any]] = []
        self._attempts: list[dict[str, Any]] = []

    def lease(self, row: Row[Any], decision: Decision, token: str, until: int) -> None:
        """It was admitted: an attempt begins."""
        self._set(row, State.LEASED, until, attempts=row.attempts + 1, lease=token)
        self._attempts.append(
            {
                "subscription": self.consumer.name,
                "seq": row.seq,
                "number": row.attempts + 1,
                "lease": token,
                "started_at": self.now,
            }
        )
        self.counts["admitted"] += 1
        self._page(decision)

    def stop(self, row: Row[Any], decision: Decision) -> None:
        """It was not admitted; no attempt was made."""
        until = NEVER if decision.kind is Kind.REVIEW else decision.until or self.now
        words = None if decision.ceiling is None else f"{decision.kind.value}: {decision.ceiling}"
        self._set(row, _STATES[decision.kind], until, error=words)
        if decision.is_new:
            self.counts[decision.kind.value] += 1
        self._page(decision)

    def skip(self, row: Row[Any]) -> None:
        """It was seen in shadow."""
        skipped = self._ledger.skip(
            self.connection,
            consumer=self.consumer.name,
            source=row.source,
            event_id=row.event_id,
            lease=row.lease if row.state == State.LEASED else None,
            now=self.now,
        )
        # What is done, or refused, stays so; a shadow only looks.
        self._set(row, State.SKIPPED, self.now, error=None if skipped else "known to the ledger")
        self.counts["skipped"] += 1

    def survives(self, row: Row[Any]) -> bool:
        """Whether a delivery whose worker is gone may be tried again."""
        self._end_attempt(row, "expired")
        self.counts["expired"] += 1
        if row.attempts >= self.retry.max_attempts:
            self._bury(row, f"its worker died in attempt {row.attempts}")
            return False
        if self.consumer.on_uncertain == "review":
            words = "its worker died: the effect may have happened"
            self._set(row, State.UNCERTAIN, NEVER, error=words)
            self.counts["uncertain"] += 1
            return False
        return True

    def fail(self, row: Row[Any], error: Exception) -> None:
        """Its cost is not known, which is an error of the consumer: nothing was reserved."""
        number = row.attempts + 1
        if number >= self.retry.max_attempts:
            self._bury(row, in_words(error), attempts=number)
            return
        pause = round(self.retry.pause(number, _RANDOM) * 1e6)
        self._set(row, State.PENDING, self.now + pause, attempts=number, error=in_words(error))
        self.counts["failed"] += 1

    def write(self) -> None:
        """Write all of it."""
        if self._states:
            self.connection.execute(
                update(deliveries)
                .where(
                    deliveries.c.subscription == bindparam("of"),
                    deliveries.c.seq == bindparam("at_seq"),
                )
                .values({name: bindparam(f"new_{name}") for name in _WRITTEN}),
                self._states,
            )
        if self._attempts:
            self.connection.execute(attempts.insert(), self._attempts)

    def _bury(self, row: Row[Any], words: str, attempts: int | None = None) -> None:
        self._ledger.bury(
            self.connection,
            consumer=self.consumer.name,
            source=row.source,
            event_id=row.event_id,
            lease=row.lease if row.state == State.LEASED else None,
            now=self.now,
        )
        self._set(row, State.DEAD, self.now, attempts=attempts, error=words)
        self.counts["dead"] += 1

    def _page(self, decision: Decision) -> None:
        for page in pages_about(
            decision,
            severity=Severity.named(self.subscription.severity),
            runbook=self.subscription.runbook,
        ):
            raise_page(self.connection, page, self.now)

    def _end_attempt(self, row: Row[Any], outcome: str) -> None:
        self.connection.execute(
            update(attempts)
            .where(
                attempts.c.subscription == self.consumer.name,
                attempts.c.seq == row.seq,
                attempts.c.lease == row.lease,
            )
            .values(ended_at=self.now, outcome=outcome)
        )

    def _set(
        self,
        row: Row[Any],
        state: State,
        visible_at: int,
        *,
        attempts: int | None = None,
        lease: str | None = None,
        error: str | None = None,
    ) -> None:
        values = {
            "state": state.value,
            "visible_at": visible_at,
            "attempts": row.attempts if attempts is None else attempts,
            "lease": lease or row.lease,
            "last_error": error,
            "updated_at": self.now,
            "finished_at": self.now if state in FINISHED else None,
        }
        self._states.append(
            {"of": self.consumer.name, "at_seq": row.seq}
            | {f"new_{name}": value for name, value in values.items()}
        )


_WRITTEN: Final = (
    "state", "visible_at", "attempts", "lease", "last_error", "updated_at", "finished_at",
)  # fmt: skip
