"""From route rules, shares and caps to the policy of each traffic class."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.core.shares import OTHER
from gunicorn_admission.core.types import Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import to_ns
from gunicorn_admission.settings.rules import RouteRule

__all__ = ["ALL", "DEFAULT", "ENDPOINT", "EXEMPT", "OTHER", "combine"]

ALL: Final = "(all)"
"""The one class of ``partition_by = "none"``."""

DEFAULT: Final = "(default)"
"""Requests without a rule where ``partition_by = "route"``."""

EXEMPT: Final = "(exempt)"
"""Requests that bypass admission."""

ENDPOINT: Final = re.compile(r"/(?:[A-Za-z0-9_~-][A-Za-z0-9_.~-]{0,39})?")
"""
First path segments that may name a class, and so become a metric label.

Others (long, with odd or non-ASCII characters, starting with a dot) share one class: paths
come from anybody, and must not bring a line break into a log or a metric.
"""

_MERGED: Final = (
    *("share", "cap", "node_cap", "deadline", "retries", "max_refusals", "stream", "release_on"),
)


def combine(
    rules: Iterable[RouteRule],
    share: Mapping[str, float],
    caps: Mapping[str, int],
    node_caps: Mapping[str, int],
) -> dict[str, PartitionPolicy]:
    """
    Return the policy of each class that is named anywhere, by name.

    Rules with one name form one class: what one of them says holds for all, and two may
    not differ, except in priority, which stays with the rule (the class reports the highest).

    Args:
        rules: Exempt ones are skipped.
        share, caps, node_caps: By class name, beside those inside rules.

    Raises:
        ConfigError: One class is given two values.

    Thread safety: pure.
    """
    classes: dict[str, dict[str, object]] = {}
    priorities: dict[str, Priority] = {}
    for rule in rules:
        if rule.exempt:
            continue
        name = rule.class_name
        known = classes.setdefault(name, {})
        priority = Priority.DEFAULT if rule.priority is None else rule.priority
        priorities[name] = min(priority, priorities.get(name, priority))
        for key in _MERGED:
            if (value := getattr(rule, key)) is not None:
                _agree(known, key, value, f"routes[{rule.pattern.text!r}].{key}", name)
    for key, table in (("share", share), ("cap", caps), ("node_cap", node_caps)):
        for name, value in table.items():
            _agree(classes.setdefault(name, {}), key, value, f"{key}[{name!r}]", name)
    return {
        name: _policy(name, priorities.get(name, Priority.DEFAULT), given)
        for name, given in classes.items()
    }


def _agree(known: dict[str, object], key: str, value: object, field: str, name: str) -> None:
    if known.setdefault(key, value) != value:
        raise ConfigError(
            field, value, f"{known[key]!r}, as given for the same class {name!r} elsewhere",
            "give a class each value once",
        )  # fmt: skip


def _policy(name: str, priority: Priority, given: Mapping[str, object]) -> PartitionPolicy:
    share, cap, deadline = given.get("share"), given.get("cap"), given.get("deadline")
    node_cap, refusals = given.get("node_cap"), given.get("max_refusals")
    return PartitionPolicy(
        name=name,
        priority=priority,
        share=share if isinstance(share, float) else None,
        cap=cap if isinstance(cap, int) else None,
        node_cap=node_cap if isinstance(node_cap, int) else None,
        deadline_ns=to_ns(deadline) if isinstance(deadline, float) else None,
        retries=given.get("retries") is not False,
        max_refusals=refusals if isinstance(refusals, int) else None,
        stream=given.get("stream") is True,
        release_on_first_byte=given.get("release_on") == "first_byte",
    )
