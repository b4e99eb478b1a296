"""Every setting in words: the one list that the documentation and the command show."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from attrs import fields, fields_dict

from gunicorn_admission.settings import convert
from gunicorn_admission.settings.durations import format_duration
from gunicorn_admission.settings.load import ENVIRONMENT_PREFIX, Source
from gunicorn_admission.settings.rules import RouteRule
from gunicorn_admission.settings.schema import Settings

__all__ = ["ABOUT", "Row", "explain", "markdown_table", "plain"]

ABOUT: Final[Mapping[str, str]] = {
    "mode": "`enforce` refuses, `monitor` counts what it would refuse, `off` does nothing.",
    "limit": "Algorithm of the concurrency limit (`adaptive`, `gradient2`, `vegas`, `aimd`), "
    "or an integer for a fixed limit.",
    "min_limit": "The limit never goes below this. Derived: an eighth of `max_limit`.",
    "max_limit": "Hard bound on requests that run at once. Derived from the threads.",
    "max_queue": "Most requests that wait for a slot. Derived: 4 x threads, or a quarter of the "
    "threads where a waiting request holds one.",
    "max_wait": "Longest wait for a slot while nothing is overloaded; 0 refuses at once. "
    "Derived: 500ms.",
    "low_max_wait": "The same for low priority; 0 means that it never waits.",
    "target_delay": "Queue delay that is still fine (CoDel target). Derived from the service time.",
    "interval": "How long the delay must stay above the target to count as overload.",
    "routes": "Rule for each path pattern: `high`, `default`, `low`, `exempt`, or a table with "
    "`priority`, `cap`, `share`, `node_cap`, `deadline`, `retries`, `stream`, `release_on`, "
    "`name`, `methods`.",
    "exempt": "More paths that bypass admission; patterns as in `routes`.",
    "exempt_health": "Let the usual health and metrics paths bypass admission (GET and HEAD).",
    "partition_by": "How classes form: `endpoint` (rule, else first path segment), `route` (rules "
    "only), `none`.",
    "share": "Fraction of the limit held back for a class, by class name.",
    "cap": "Most slots of one class: an integer, or a table by class name. Derived: no class may "
    "hold the whole limit.",
    "node_limit": "Most requests that run at once in all workers of the node together, such as the "
    "connections that a database allows it.",
    "node_cap": "The same for a class, by class name.",
    "retry_after": "Smallest and largest `Retry-After`; the value between is measured.",
    "shed_status": "Status of a refusal: 503 or 429.",
    "status_path": "Path below which `/live`, `/ready` and, on loopback, figures are served; "
    "nothing is without it.",
    "stall_after": "Age at which a running request counts as hanging, at least (or 10 times the "
    "usual service time).",
    "recycle_after": "Replace a worker when so many of its requests have hung for so long that too "
    "few threads are left; one worker of the node at a time.",
    "read_timeout": "How long a client may take over the head and the body of its request.",
    "drain_bytes": "Most bytes of a refused body that are read so that its client sees the answer.",
    "drain_timeout": "Longest time spent on that.",
    "gone_check": "Drop waiting requests whose client has left.",
    "reserve": "Threads kept free for probes and refusals. Derived from the threads.",
    "threads": "Threads that run requests. Taken from the server.",
    "trust_request_start": "Count the time since `X-Request-Start`, in the gate and with `sync`; "
    "only behind a proxy that sets it.",
    "statsd_host": "`host:port` of a statsd server, beside gunicorn's own setting.",
    "statsd_prefix": "Put before every metric name.",
    "statsd_interval": "Time between two reports of gauges.",
    "log_interval": "Time between two summary lines while requests are refused; 0 writes none.",
}
"""What each setting does, by name."""

_DURATIONS: Final = (convert.seconds, convert.optional_seconds)


class Row(NamedTuple):
    """
    One setting as it is now.

    Attributes:
        name: Of the setting.
        value: As text that could be written in its place.
        default: The same for the default.
        source: Where the value came from.
    """

    name: str
    value: str
    default: str
    source: str


def explain(settings: Settings, sources: Mapping[str, Source]) -> tuple[Row, ...]:
    """
    Return every setting, its value and where that came from.

    Args:
        settings, sources: From :func:`~gunicorn_admission.settings.load.load`.
    """
    return tuple(
        Row(name, _show(name, getattr(settings, name)), default, str(sources[name]))
        for name, default in _defaults().items()
    )


def markdown_table() -> str:
    """Return the table of all settings for the documentation."""
    lines = ["| Setting | Default | What it does | Environment |", "|---|---|---|---|"]
    for name, default in _defaults().items():
        shown = f"`{default}`" if default else "(empty)"
        variable = f"`{ENVIRONMENT_PREFIX}{name.upper()}`"
        lines.append(f"| `{name}` | {shown} | {ABOUT[name]} | {variable} |")
    return "\n".join(lines) + "\n"


def _defaults() -> dict[str, str]:
    default = Settings()
    return {f.name: _show(f.name, getattr(default, f.name)) for f in fields(Settings)}


def _show(name: str, value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    converter: object = fields_dict(Settings)[name].converter
    if isinstance(value, float) and converter in _DURATIONS:
        return format_duration(value)
    if isinstance(value, tuple):
        items = [format_duration(v) if isinstance(v, float) else str(v) for v in value]
        return ",".join(items) if items else "[]"
    if isinstance(value, Mapping):
        return json.dumps(dict(value), default=plain)
    return str(value)


def plain(rule: RouteRule) -> str | dict[str, object]:
    """
    Return a rule in the form in which a user would write it.

    Args:
        rule: Of ``Settings.routes``.
    """
    given: dict[str, object] = {}
    if rule.exempt:
        given["priority"] = "exempt"
    elif rule.priority is not None:
        given["priority"] = rule.priority.name.lower()
    for key in ("name", "share", "cap", "node_cap", "retries", "stream", "release_on"):
        if (value := getattr(rule, key)) is not None:
            given[key] = value
    if rule.deadline is not None:
        given["deadline"] = format_duration(rule.deadline)
    if rule.methods is not None:
        given["methods"] = sorted(rule.methods)
    return str(given["priority"]) if given.keys() == {"priority"} else given
