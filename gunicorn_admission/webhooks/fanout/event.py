"""What a consumer is given: one event, and which attempt this is."""

from __future__ import annotations

import json
from typing import Any

from attrs import field, frozen

__all__ = ["Event"]


@frozen(kw_only=True)
class Event:
    """
    One event, as it was sent.

    Attributes:
        consumer: Whose attempt this is.
        source, event_id: Where it came from, and the sender's own id of it.
        type: What happened, where that is known.
        body: The bytes that came, unchanged.
        headers: Those that were kept: pairs of name and value.
        received_at: When it came, in microseconds since the epoch.
        source_time: When it happened or was sent, where the sender says. Events may come in
            another order than they happened; this is what tells which state is newer.
        attempt: 1 for the first attempt.
        traceparent: W3C trace context of the request that carried it.

    Thread safety: immutable.
    """

    consumer: str
    source: str
    event_id: str
    type: str | None
    body: bytes = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    received_at: int
    source_time: int | None = None
    attempt: int = 1
    traceparent: str | None = None

    @property
    def idempotency_key(self) -> str:
        """
        Key for whoever performs the effect elsewhere: the same in every attempt.

        After a crash nobody knows whether a call got through; with this key the second one does
        nothing.
        """
        return f"{self.consumer}:{self.source}:{self.event_id}"

    def json(self) -> Any:
        """
        Return the JSON value in the body.

        Raises:
            ValueError: The body is no JSON.
        """
        return json.loads(self.body)
