"""What a handler can say besides "done" (it returns) and "failed" (it raises)."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from gunicorn_admission.errors import AdmissionError
from gunicorn_admission.settings.durations import DurationLike, parse_duration
from gunicorn_admission.webhooks.gates.units import check_cost

__all__ = ["GiveUp", "LeaseLost", "RetryIn", "Spent"]


class GiveUp(Exception):
    """Raised by a handler: no further attempt can help. The event is a dead letter at once."""


class RetryIn(Exception):
    """
    Raised by a handler: the attempt failed, and the next one is to begin after this pause.

    Args:
        pause: In place of the backoff; what a ``Retry-After`` said, for example.
        reason: For operators.
    """

    def __init__(self, pause: DurationLike, reason: str = "") -> None:
        self.pause = parse_duration(pause, "pause")
        super().__init__(reason or f"again in {self.pause:g} s")


class LeaseLost(AdmissionError):
    """The lease ended before the attempt did, so its result does not count."""


@frozen
class Spent:
    """
    Returned by a handler: what the attempt really cost, for a gate that charges ``actual``.

    Args:
        amounts: Whole numbers by unit, for example ``{"tokens": 812}``.

    Raises:
        ConfigError: It is not whole numbers by unit.
    """

    amounts: Mapping[str, int] = field(converter=check_cost)
