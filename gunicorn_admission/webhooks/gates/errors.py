"""What the ledger raises where a person asks for what cannot be."""

from __future__ import annotations

from gunicorn_admission.errors import AdmissionError

__all__ = ["LedgerConflict"]


class LedgerConflict(AdmissionError):
    """
    An event is not in a state in which this can be done to it.

    Args:
        consumer: Whose ledger.
        event: ``source/event_id``.
        state: The state it is in, or ``None``: the consumer has no record of it.
        hint: One sentence that says what to do.
    """

    def __init__(self, consumer: str, event: str, state: str | None, hint: str) -> None:
        self.consumer = consumer
        self.event = event
        self.state = state
        self.hint = hint
        what = f"is {state}" if state else "has no record"
        super().__init__(f"{event} at {consumer} {what}. Hint: {hint}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.consumer, self.event, self.state, self.hint)
