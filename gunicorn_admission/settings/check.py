"""What must hold between settings that are each fine alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import format_duration
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.settings.partitions import DEFAULT, ENDPOINT, OTHER, combine
from gunicorn_admission.settings.patterns import parse_pattern
from gunicorn_admission.settings.rules import RouteRule, find_conflict

if TYPE_CHECKING:
    from gunicorn_admission.settings.schema import Settings

__all__ = ["MOST_NODE_CAPS", "check", "form_classes", "refuse_conflict"]

MOST_NODE_CAPS: Final = 15
"""Classes with a bound that the workers of a node share; there is a place for each on a page."""

_MOST_SHARED: Final = 0.9


def check(settings: Settings) -> None:
    """
    Refuse settings that contradict each other.

    Raises:
        ConfigError: It names the field to change first.
    """
    for check_one in (_sizes, _times, _answer, _statsd, _classes):
        check_one(settings)


def _sizes(settings: Settings) -> None:
    low, limit, high = settings.min_limit, settings.limit, settings.max_limit
    if low is not None and high is not None and low > high:
        raise ConfigError(
            "min_limit", low, f"at most max_limit = {high}", "lower min_limit or raise max_limit"
        )
    if isinstance(limit, int):
        if high is not None and limit > high:
            raise ConfigError(
                "limit", limit, f"at most max_limit = {high}", "leave out max_limit, or raise it"
            )
        if low is not None and limit < low:
            raise ConfigError(
                "limit", limit, f"at least min_limit = {low}", "a fixed limit needs no min_limit"
            )


def _times(settings: Settings) -> None:
    target, interval = settings.target_delay, settings.interval
    if target is not None and interval <= target:
        raise ConfigError(
            "interval", interval, f"a duration above target_delay = {format_duration(target)}",
            "20 times the target is usual: a queue must stand for an interval to count",
        )  # fmt: skip
    if settings.recycle_after is not None and settings.recycle_after < settings.stall_after:
        raise ConfigError(
            "recycle_after", settings.recycle_after,
            f"at least stall_after = {format_duration(settings.stall_after)}",
            "minutes suit most services: a fresh worker hangs too while its database does",
        )  # fmt: skip
    if settings.max_wait is not None and settings.low_max_wait > settings.max_wait:
        raise ConfigError(
            "low_max_wait", settings.low_max_wait,
            f"at most max_wait = {format_duration(settings.max_wait)}",
            "low priority should not wait longer than the others",
        )  # fmt: skip


def _answer(settings: Settings) -> None:
    first, last = settings.retry_after
    if not 0 < first <= last <= 86400:
        raise ConfigError(
            "retry_after", settings.retry_after,
            "the smallest (above 0) and then the largest Retry-After, up to 24h",
            "swap them" if first > last else "(1, 30) suits most services",
        )  # fmt: skip
    if settings.shed_status not in (503, 429):
        raise ConfigError(
            "shed_status", settings.shed_status, "503 or 429",
            "503 says that the server is busy; others make clients give up or blame themselves",
        )  # fmt: skip
    path = settings.status_path
    if path is not None:
        pattern = parse_pattern(path, "status_path")
        if pattern.exact or pattern.starred or not pattern.segments:
            raise ConfigError(
                "status_path", path, "a plain path below the root such as '/-/admission'",
                "None serves no status page",
            )  # fmt: skip


def _statsd(settings: Settings) -> None:
    address = settings.statsd_host
    if address is None:
        return
    kind, _, rest = address.rpartition(":")
    host_only = not kind or address.endswith("]")
    if not (
        (rest.startswith("/") if kind.startswith("unix") else host_only or rest.isdecimal())
        and address.split() == [address]
    ):
        raise ConfigError(
            "statsd_host", address, "host:port or unix:///path", "write for example localhost:8125"
        )


def _classes(settings: Settings) -> None:
    tables = ("share", settings.share), ("cap", settings.caps), ("node_cap", settings.node_cap)
    for field, names in tables:
        for name in names:
            _refuse_unknown_class(settings, field, name)
    refuse_conflict(settings.rules)
    form_classes(settings, settings.rules)


def form_classes(settings: Settings, rules: Iterable[RouteRule]) -> dict[str, PartitionPolicy]:
    """
    Return the policy of each class that some rules form together with the settings.

    Args:
        settings: For ``share``, ``cap`` and ``partition_by``; its own rules are not added.
        rules: All rules that are to hold at once.

    Raises:
        ConfigError: A class is given two values, or more is held back than is good.

    Thread safety: pure.
    """
    classes = combine(rules, settings.share, settings.caps, settings.node_cap)
    if settings.partition_by == "none":
        bound = [p.name for p in classes.values() if (p.share, p.cap, p.node_cap) != (None,) * 3]
        if bound or settings.cap is not None:
            raise ConfigError(
                "partition_by", "none", "'endpoint' or 'route' where a class has a share or cap",
                f"leave out the share and cap{f' of {bound[0]!r}' if bound else ''}, or divide",
            )  # fmt: skip
    together = [p.name for p in classes.values() if p.node_cap is not None]
    if len(together) > MOST_NODE_CAPS:
        raise ConfigError(
            "node_cap", len(together), f"at most {MOST_NODE_CAPS} classes with a node_cap",
            "give those that need one resource the same name, so that they form one class",
        )  # fmt: skip
    total = sum(partition.share or 0.0 for partition in classes.values())
    if total > _MOST_SHARED + 1e-9:
        raise ConfigError(
            "share", round(total, 3), f"shares that sum to at most {_MOST_SHARED}",
            "what is held back for one class is idle for the others; half of the limit is much",
        )  # fmt: skip
    return classes


def _refuse_unknown_class(settings: Settings, field: str, name: str) -> None:
    known = {rule.class_name for rule in settings.routes.values() if not rule.exempt}
    if settings.partition_by == "endpoint":
        if isinstance(name, str) and ENDPOINT.fullmatch(name):
            return
        known.add(OTHER)
    else:
        known.add(DEFAULT)
    if name not in known:
        raise ConfigError(
            f"{field}[{name!r}]", getattr(settings, field)[name],
            "the name of a rule (its pattern unless it has a name), or a first segment '/users'"
            if settings.partition_by == "endpoint"
            else "the name of a rule (its pattern unless it has a name)",
            did_you_mean(str(name), known),
        )  # fmt: skip


def refuse_conflict(rules: Iterable[RouteRule]) -> None:
    """
    Refuse rules of which neither decides over the other, when they differ.

    Raises:
        ConfigError: It names both patterns.
    """
    if pair := find_conflict(rules):
        one, two = (rule.pattern.text for rule in pair)
        raise ConfigError(
            f"routes[{two!r}]", two, f"a pattern that does not compete with {one!r}",
            "both cover some request and neither is more specific: give them equal rules, other "
            "methods, or make one pattern longer",
        )  # fmt: skip
