"""The one frozen object that holds what a user may set, in the units a user writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from attrs import field, frozen

from gunicorn_admission.settings import convert
from gunicorn_admission.settings.check import check
from gunicorn_admission.settings.convert import accepted, within
from gunicorn_admission.settings.rules import RouteRule, parse_rule

if TYPE_CHECKING:
    from gunicorn_admission.settings.derive import Resolved

__all__ = ["DEFAULT_MAX_WAIT", "EXEMPT_DEFAULTS", "Settings"]

DEFAULT_MAX_WAIT: Final = 0.5
"""Seconds that a request may wait while nothing is overloaded, when ``max_wait`` is None."""

EXEMPT_DEFAULTS: Final = (
    "/healthz",
    "/health",
    "/livez",
    "/readyz",
    "/ready",
    "/live",
    "/ping",
    "/metrics",
    "/-/healthy",
    "/-/ready",
    "/_health",
    "/status/health",
)
"""
Paths that bypass admission on GET and HEAD unless ``exempt_health`` is off or a rule names them.

Each means that path only, with or without a last slash: ``/health/records`` is an
ordinary page, and a free pass for all below ``/health`` would be a way around the limiter.
"""

_HOUR = 3600.0
_BIG = 1_000_000


@frozen(kw_only=True)
class Settings:
    """
    Everything that can be set. Each value is checked when the object is made.

    The meaning of each field, its default and its environment name are one table, kept
    in :data:`~gunicorn_admission.settings.describe.ABOUT`. Durations are kept as float
    seconds and accept ``5ms``, ``1.5s``, ``2m``, a number of seconds or a ``timedelta``.
    ``None`` means that the value is derived, mostly from the number of threads
    (:meth:`derive`). Change one with ``attrs.evolve``.

    Raises:
        ConfigError: A value cannot work, alone or beside the others; it names the field,
            the value, what is accepted, and what to do.

    Thread safety: immutable.
    """

    mode: str = field(default="enforce", converter=convert.mode, validator=accepted)
    limit: str | int = field(
        default="adaptive",
        converter=convert.limit,
        validator=within(1, _BIG, "0 would serve nobody; mode = 'off' switches admission off"),
    )
    min_limit: int | None = field(
        default=None,
        converter=convert.optional_integer,
        validator=within(1, _BIG, "None derives an eighth of max_limit"),
    )
    max_limit: int | None = field(
        default=None,
        converter=convert.optional_integer,
        validator=within(1, _BIG, "None derives it from the number of threads"),
    )
    max_queue: int | None = field(
        default=None,
        converter=convert.optional_integer,
        validator=within(0, _BIG, "0 refuses at once what has no slot; None derives it"),
    )
    max_wait: float | None = field(
        default=None,
        converter=convert.optional_seconds,
        validator=within(0, _HOUR, "a client does not wait that long", duration=True),
    )
    low_max_wait: float = field(
        default=0.0,
        converter=convert.seconds,
        validator=within(0, _HOUR, "a client does not wait that long", duration=True),
    )
    target_delay: float | None = field(
        default=None,
        converter=convert.optional_seconds,
        validator=within(1e-4, 10, "None lets it follow the service time", duration=True),
    )
    interval: float = field(
        default=0.1,
        converter=convert.seconds,
        validator=within(1e-3, 60, "100ms suits most services", duration=True),
    )
    routes: Mapping[str, RouteRule] = field(
        factory=dict, converter=convert.routes, validator=accepted
    )
    exempt: tuple[str, ...] = field(default=(), converter=convert.paths, validator=accepted)
    exempt_health: bool = field(default=True, converter=convert.switch, validator=accepted)
    partition_by: str = field(
        default="endpoint", converter=convert.partitioning, validator=accepted
    )
    share: Mapping[str, float] = field(factory=dict, converter=convert.shares, validator=accepted)
    cap: int | Mapping[str, int] | None = field(
        default=None, converter=convert.optional_caps, validator=accepted
    )
    node_limit: int | None = field(
        default=None,
        converter=convert.optional_integer,
        validator=within(1, _BIG, "the connections that a database allows this node, say"),
    )
    node_cap: Mapping[str, int] = field(factory=dict, converter=convert.caps, validator=accepted)
    retry_after: tuple[float, float] = field(
        default=(1.0, 30.0), converter=convert.seconds_pair, validator=accepted
    )
    shed_status: int = field(default=503, converter=convert.integer, validator=accepted)
    status_path: str | None = field(
        default=None, converter=convert.optional_text, validator=accepted
    )
    stall_after: float = field(
        default=5.0,
        converter=convert.seconds,
        validator=within(0.1, _HOUR, "longer than your slowest usual request", duration=True),
    )
    recycle_after: float | None = field(
        default=None,
        converter=convert.optional_seconds,
        validator=within(0.1, 24 * _HOUR, "None never replaces a worker", duration=True),
    )
    read_timeout: float = field(
        default=10.0,
        converter=convert.seconds,
        validator=within(0.1, _HOUR, "long enough for the slowest honest client", duration=True),
    )
    drain_bytes: int = field(
        default=1 << 20,
        converter=convert.integer,
        validator=within(0, 1 << 30, "count bytes; 0 reads nothing of a refused body"),
    )
    drain_timeout: float = field(
        default=1.0,
        converter=convert.seconds,
        validator=within(0, 60, "a thread is spent while a refused body is read", duration=True),
    )
    gone_check: bool = field(default=True, converter=convert.switch, validator=accepted)
    reserve: int | None = field(
        default=None,
        converter=convert.optional_integer,
        validator=within(0, _BIG, "None derives it from the number of threads"),
    )
    threads: int | None = field(
        default=None,
        converter=convert.optional_integer,
        validator=within(1, _BIG, "leave it out: the server's own setting is used"),
    )
    trust_request_start: bool = field(default=False, converter=convert.switch, validator=accepted)
    statsd_host: str | None = field(
        default=None, converter=convert.optional_text, validator=accepted
    )
    statsd_prefix: str = field(default="", converter=convert.text, validator=accepted)
    statsd_interval: float = field(
        default=1.0,
        converter=convert.seconds,
        validator=within(0.1, _HOUR, "1s suits most dashboards", duration=True),
    )
    log_interval: float = field(
        default=60.0,
        converter=convert.seconds,
        validator=within(0, 24 * _HOUR, "0 writes no summary lines", duration=True),
    )

    def __attrs_post_init__(self) -> None:
        check(self)

    @property
    def rules(self) -> tuple[RouteRule, ...]:
        """The rules of ``routes`` and ``exempt``; not the built-in health paths."""
        exempt = (parse_rule(path, "exempt", "exempt") for path in self.exempt)
        return (*self.routes.values(), *exempt)

    @property
    def caps(self) -> Mapping[str, int]:
        """Caps by class name, as far as ``cap`` is such a mapping."""
        return self.cap if isinstance(self.cap, Mapping) else {}

    @property
    def node_classes(self) -> tuple[str, ...]:
        """Names of the classes with a bound over all workers of the node."""
        in_rules = (rule.class_name for rule in self.routes.values() if rule.node_cap is not None)
        return tuple(dict.fromkeys((*self.node_cap, *in_rules)))

    def derive(self, threads: int, waiting_holds_thread: bool) -> Resolved:
        """
        Return the numbers that the core obeys on a worker with so many threads.

        Args:
            threads: Threads (or greenlets) that may run requests; at least 1.
            waiting_holds_thread: ``True`` for the gate, where a request that waits
                occupies a thread; ``False`` for the executor, where it does not.

        Raises:
            ConfigError: A size set by the user does not fit the threads.
        """
        from gunicorn_admission.settings.derive import derive

        return derive(self, threads, waiting_holds_thread)
