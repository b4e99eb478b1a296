"""What one consumer wants, and how it is to be delivered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from attrs import Attribute, field, frozen
from sqlalchemy import Row

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import DurationLike, parse_duration
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.webhooks.fanout.filters import Filter
from gunicorn_admission.webhooks.fanout.paths import Path
from gunicorn_admission.webhooks.fanout.retry import RetryPolicy
from gunicorn_admission.webhooks.fanout.states import Mode
from gunicorn_admission.webhooks.pages import Severity
from gunicorn_admission.webhooks.providers.payload import Json

__all__ = ["Subscription", "check_name", "parse_mode"]

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_DAY: Final = 24 * 3600.0


def check_name(name: str) -> str:
    """
    Return the name of a consumer.

    Raises:
        ConfigError: It cannot be one.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            "name", name, "1 to 64 of a-z, 0-9, dot, dash and underscore",
            "it appears in metrics and pages: usage-analytics",
        )  # fmt: skip
    return name


def parse_mode(mode: str) -> Mode:
    """
    Return a mode by its name.

    Raises:
        ConfigError: There is none of that name.
    """
    try:
        return Mode(mode)
    except ValueError:
        names = tuple(known.value for known in Mode)
        raise ConfigError(
            "mode", mode, f"one of {', '.join(names)}", did_you_mean(str(mode), names)
        ) from None


def _retry(value: RetryPolicy | Mapping[str, Any]) -> RetryPolicy:
    return value if isinstance(value, RetryPolicy) else RetryPolicy.of(value)


def _between(low: float, high: float, hint: str) -> Any:
    def check(_: object, attribute: Attribute[Any], value: float | None) -> None:
        if value is not None and not low <= value <= high:
            raise ConfigError(
                attribute.name, value, f"a duration from {low:g} to {high:g} seconds", hint
            )

    return check


def _retention(value: DurationLike) -> float:
    return parse_duration(value, "retention")


def _lease(value: DurationLike) -> float:
    return parse_duration(value, "lease")


def _objective(value: DurationLike | None) -> float | None:
    return None if value is None else parse_duration(value, "objective")


def _severity(value: Severity | str | None) -> Severity | None:
    if value is None or isinstance(value, Severity):
        return value
    try:
        return Severity.named(value)
    except ValueError:
        names = (*(known.value for known in Severity), "none")
        raise ConfigError(
            "severity", value, f"one of {', '.join(names)}", did_you_mean(str(value), names)
        ) from None


def _runbook(value: str | None) -> str | None:
    if not value:
        return None
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or not value.isprintable():
        raise ConfigError(
            "runbook", value, "a URL that begins with http:// or https://",
            "whoever is paged follows it",
        )  # fmt: skip
    return value


@frozen(kw_only=True)
class Subscription:
    """
    The standing order of one consumer.

    Args:
        name: Of the consumer.
        filter: JSON pattern over type, source, headers and body; ``{}`` wants every event.
        mode: See :class:`Mode`.
        retry: When a failed attempt is followed by another one.
        retention: How long its events are kept, at least. 30 days.
        lease: How long a worker owns an event without a sign of life. 60 seconds: it is
            extended while the worker lives, and is what a crash costs.
        objective: Recovery objective: the age of the oldest event that is worth a page.
        severity: Of every page about it: ``critical`` where work that is refused, late or dead
            threatens a promise to a customer, ``warning``, ``info``; ``None`` or ``"none"`` pages
            nobody.
        runbook: URL that its pages name.
        order_by: Path of a key; events of one key are delivered one after the other.
        start_seq: Number of the first event it may have.
        backfill_next, backfill_end: What of the older events is still to be looked at.
        created_at, mode_since: Microseconds since the epoch.

    Durations are kept as seconds and may be given as text, ``"90s"``.

    Raises:
        ConfigError: A value cannot work.

    Thread safety: immutable.
    """

    name: str = field(converter=check_name)
    filter: Mapping[str, Json] = field(factory=dict)
    mode: Mode = field(default=Mode.ACTIVE, converter=parse_mode)
    retry: RetryPolicy = field(factory=RetryPolicy, converter=_retry)
    retention: float = field(
        default=30 * _DAY,
        converter=_retention,
        validator=_between(60, 3660 * _DAY, "what is thrown away earlier cannot be replayed"),
    )
    lease: float = field(
        default=60.0,
        converter=_lease,
        validator=_between(
            1, 12 * 3600, "a crash costs one lease; a living worker extends its own"
        ),
    )
    objective: float | None = field(
        default=None,
        converter=_objective,
        validator=_between(1, 3660 * _DAY, "None pages on no age"),
    )
    severity: Severity | None = field(default=Severity.WARNING, converter=_severity)
    runbook: str | None = field(default=None, converter=_runbook)
    order_by: str | None = None
    start_seq: int = 0
    backfill_next: int | None = None
    backfill_end: int | None = None
    created_at: int = 0
    mode_since: int = 0

    def __attrs_post_init__(self) -> None:
        Filter(self.filter)
        if self.order_by is not None:
            Path(self.order_by)

    @property
    def is_backfilling(self) -> bool:
        """Whether older events are still to be looked at."""
        return self.backfill_next is not None

    def as_row(self) -> dict[str, Any]:
        """Return the columns of the store."""
        return {
            "name": self.name,
            "filter": self.filter,
            "mode": self.mode.value,
            "retry": self.retry.as_dict(),
            "retention_us": round(self.retention * 1e6),
            "lease_us": round(self.lease * 1e6),
            "objective_us": None if self.objective is None else round(self.objective * 1e6),
            "severity": "none" if self.severity is None else self.severity.value,
            "runbook": self.runbook,
            "order_by": self.order_by,
            "start_seq": self.start_seq,
            "backfill_next": self.backfill_next,
            "backfill_end": self.backfill_end,
            "created_at": self.created_at,
            "mode_since": self.mode_since,
        }

    @classmethod
    def of(cls, row: Row[Any]) -> Subscription:
        """Return what a row of the store says."""
        values = dict(row._mapping)
        for name in ("retention", "lease", "objective"):
            micros = values.pop(f"{name}_us")
            values[name] = None if micros is None else micros / 1e6
        return cls(**values)
