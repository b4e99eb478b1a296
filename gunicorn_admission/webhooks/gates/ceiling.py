"""A ceiling, as code or an operator declares it."""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import DurationLike
from gunicorn_admission.webhooks.gates.spans import Span, parse_span
from gunicorn_admission.webhooks.gates.units import check_amount, check_unit

__all__ = ["Ceiling"]

_NOTE: Final = 500


@frozen(init=False)
class Ceiling:
    """
    So much of a unit in each window, for one consumer.

    Args:
        hard: The most that may be reserved and settled in a window; never passed by a
            reservation. ``None`` only counts, and tells when ``soft`` is crossed.
        unit: What is counted: ``requests``, ``tokens``, ``bytes``, ``usd_micros``, or a name of
            your own.
        per: ``hour``, ``day``, ``week`` (from Monday) or ``month`` by the local clock of
            ``zone``; ``total``; or a duration such as ``"24h"``: any window of that length.
        zone: IANA time zone of a calendar window; UTC where it is left out. A day of 23 or 25
            hours is one window.
        soft: Beyond it work goes on, and one page tells of it in each window.
        bill_source: Where the unit stands on a bill, for ``gate reconcile``.

    Raises:
        ConfigError: A value cannot work; it names the field.

    Thread safety: immutable.
    """

    unit: str
    span: Span
    hard: int | None
    soft: int | None
    bill_source: str | None

    def __init__(
        self,
        hard: int | None,
        unit: str,
        *,
        per: DurationLike = "day",
        zone: str | None = None,
        soft: int | None = None,
        bill_source: str | None = None,
    ) -> None:
        if hard is None and soft is None:
            raise ConfigError("hard", None, "a whole number", "give hard, or soft to only be told")
        if hard is not None:
            check_amount(hard, "hard")
        if soft is not None:
            check_amount(soft, "soft")
            if hard is not None and soft >= hard:
                raise ConfigError(
                    "soft", soft, f"less than hard = {hard}", "soft warns before hard refuses"
                )
        if bill_source is not None and not (
            isinstance(bill_source, str) and 0 < len(bill_source) <= _NOTE
        ):
            raise ConfigError(
                "bill_source", bill_source, f"a note of at most {_NOTE} characters",
                "say where the unit stands on the bill",
            )  # fmt: skip
        self.__attrs_init__(check_unit(unit), parse_span(per, zone), hard, soft, bill_source)

    def __str__(self) -> str:
        """``500 requests per day America/New_York``, as pages and errors name it."""
        bound = f"{self.hard}" if self.hard is not None else f"soft {self.soft}"
        return f"{bound} {self.unit} per {self.span}"

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it; ``span`` stands for ``per`` and ``zone``."""
        return {
            "unit": self.unit,
            "span": str(self.span),
            "hard": self.hard,
            "soft": self.soft,
            "bill_source": self.bill_source,
        }
