"""One route rule: which requests it covers and what they are promised and denied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, TypeVar

from attrs import evolve, frozen

from gunicorn_admission.core.types import Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import DurationLike, parse_duration
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.settings.patterns import Pattern, overlap, parse_pattern

__all__ = ["RouteRule", "RuleLike", "find_conflict", "parse_rule", "parse_share"]

_PRIORITIES: Final = {priority.name.lower(): priority for priority in Priority}
_EXEMPT: Final = "exempt"
_RELEASES: Final = ("close", "first_byte")
_T = TypeVar("_T")


@frozen(kw_only=True)
class RouteRule:
    """
    What holds for the requests that a pattern covers. ``None``: the user did not say.

    Attributes:
        pattern: Paths covered.
        methods: Methods covered, upper case; ``None`` for all.
        exempt: These requests bypass admission; nothing else applies then.
        name: Class name in metrics and logs; rules with one name form one class.
        priority: Of these requests; DEFAULT when not given.
        share: Fraction of the limit held back for the class (0 < share < 1).
        cap: Most slots that the class may hold.
        node_cap: The same for all workers of the node together.
        deadline: Seconds that the sender waits for an answer.
        retries: Whether the sender retries a refusal.
        max_refusals: Refusals in a row that the sender bears; then the next one goes first. Only
            sources of webhooks say this.
        stream: Answers live long; only the time to their first byte is a sample.
        release_on: When the slot is free again: ``"close"`` or ``"first_byte"``.
    """

    pattern: Pattern
    methods: frozenset[str] | None = None
    exempt: bool = False
    name: str | None = None
    priority: Priority | None = None
    share: float | None = None
    cap: int | None = None
    node_cap: int | None = None
    deadline: float | None = None
    retries: bool | None = None
    max_refusals: int | None = None
    stream: bool | None = None
    release_on: Literal["close", "first_byte"] | None = None

    @property
    def class_name(self) -> str:
        """The given name, else the pattern as it was written."""
        return self.name or self.pattern.text

    def covers(self, other: RouteRule) -> bool:
        """Tell whether this speaks about all that a rule for the same pattern is about."""
        return self.pattern == other.pattern and (
            self.methods is None or (other.methods is not None and other.methods <= self.methods)
        )

    def shares_requests_with(self, other: RouteRule) -> bool:
        """Tell whether neither decides over the other for some request."""
        one, two = self.methods, other.methods
        return (one is None or two is None or not one.isdisjoint(two)) and overlap(
            self.pattern, other.pattern
        )


RuleLike = str | Priority | Mapping[str, object] | RouteRule
"""What a user may write for a pattern: a priority, ``"exempt"``, or a table of fields."""

_FIELDS: Final = (
    "priority", "cap", "share", "node_cap", "deadline", "retries", "stream", "release_on", "name",
    "methods",
)  # fmt: skip


def parse_rule(pattern: str, value: RuleLike, field: str = "routes") -> RouteRule:
    """
    Return the rule that a user wrote for one pattern.

    Args:
        pattern: See :mod:`~gunicorn_admission.settings.patterns`.
        value: See :data:`RuleLike`; a :class:`RouteRule` is returned as it is.
        field: Name of the setting, for the error.

    Raises:
        ConfigError: It names the pattern, and the field inside the rule.

    Thread safety: pure.
    """
    if isinstance(value, RouteRule):
        return value
    parsed = parse_pattern(pattern, field)
    field = f"{field}[{pattern!r}]"
    if not isinstance(value, Mapping):
        exempt, priority = _priority(value, field)
        return RouteRule(pattern=parsed, exempt=exempt, priority=priority)
    for key in value:
        if key not in _FIELDS:
            raise ConfigError(
                f"{field}.{key}", value[key], f"one of {', '.join(_FIELDS)}",
                did_you_mean(str(key), _FIELDS),
            )  # fmt: skip
    given = {key: item for key, item in value.items() if item is not None}
    exempt, priority = _priority(given.get("priority", Priority.DEFAULT), f"{field}.priority")
    if exempt and (useless := sorted(given.keys() - {"priority", "methods"})):
        raise ConfigError(
            f"{field}.{useless[0]}", given[useless[0]], "nothing beside methods",
            "an exempt route bypasses admission, so it has no class of its own",
        )  # fmt: skip
    return RouteRule(
        pattern=parsed,
        methods=_methods(given.get("methods"), f"{field}.methods"),
        exempt=exempt,
        name=_name(given.get("name"), f"{field}.name"),
        priority=priority if "priority" in given else None,
        share=_optional(given, "share", field, parse_share),
        cap=_optional(given, "cap", field, _cap),
        node_cap=_optional(given, "node_cap", field, _cap),
        deadline=_optional(given, "deadline", field, _deadline),
        retries=_optional(given, "retries", field, _switch),
        stream=_optional(given, "stream", field, _switch),
        release_on=_optional(given, "release_on", field, _release),
    )


def parse_share(value: object, field: str) -> float:
    """
    Return a share.

    Raises:
        ConfigError: It is not a fraction above 0 and below 1.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise ConfigError(
            field, value, "a fraction above 0 and below 1, for example 0.25",
            "a share is held back even while nobody uses it; half of the limit is much",
        )  # fmt: skip
    return float(value)


def find_conflict(rules: Iterable[RouteRule]) -> tuple[RouteRule, RouteRule] | None:
    """
    Return two rules that say different things about one request, neither more specific.

    Args:
        rules: In any order; the pair found does not depend on it.
    """
    rivals: dict[object, list[RouteRule]] = {}
    for rule in sorted(rules, key=lambda rule: rule.pattern.text):
        pattern = rule.pattern
        group = rivals.setdefault(pattern.specificity if pattern.starred else pattern, [])
        for other in group:
            same = evolve(other, pattern=pattern, methods=rule.methods) == rule
            if not same and rule.shares_requests_with(other):
                return other, rule
        group.append(rule)
    return None


def _priority(value: object, field: str) -> tuple[bool, Priority | None]:
    if isinstance(value, Priority):
        return False, value
    known = (*_PRIORITIES, _EXEMPT)
    name = value.strip().lower() if isinstance(value, str) else ""
    if name not in known:
        hint = did_you_mean(name, known) if name else "write a priority or a table of fields"
        raise ConfigError(field, value, f"one of {', '.join(known)}", hint)
    return name == _EXEMPT, _PRIORITIES.get(name)


def _methods(value: object, field: str) -> frozenset[str] | None:
    if value is None:
        return None
    methods = [value] if isinstance(value, str) else value
    if not isinstance(methods, Iterable) or not (methods := list(methods)):
        raise ConfigError(field, value, "HTTP methods such as ['POST']", "leave it out for all")
    for method in methods:
        if not isinstance(method, str) or not method.isascii() or not method.isalpha():
            raise ConfigError(
                field, value, "HTTP methods such as ['POST', 'PUT']", f"{method!r} is none"
            )
    return frozenset(method.upper() for method in methods)


def _name(value: object, field: str) -> str | None:
    if value is None:
        return None
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= 64
        or not value.isprintable()
        or value.startswith("(")
    ):
        raise ConfigError(
            field, value, "1 to 64 printable characters, the first one no parenthesis",
            "it becomes a metric label; names in parentheses are ours",
        )  # fmt: skip
    return value


def _cap(value: object, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(
            field, value, "an integer from 1", "leave it out for the default; 0 would serve nobody"
        )
    return value


def _deadline(value: object, field: str) -> float:
    if not isinstance(value, DurationLike) or not (seconds := parse_duration(value, field)):
        raise ConfigError(
            field, value, "a duration above 0 such as '10s'",
            "write how long the sender waits for an answer",
        )  # fmt: skip
    return seconds


def _switch(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(field, value, "true or false", "write it without quotes")
    return value


def _release(value: object, field: str) -> Literal["close", "first_byte"]:
    if value == "close" or value == "first_byte":
        return value
    raise ConfigError(
        field, value, f"one of {', '.join(_RELEASES)}", did_you_mean(str(value), _RELEASES)
    )


def _optional(
    given: Mapping[str, object], key: str, field: str, parse: Callable[[object, str], _T]
) -> _T | None:
    return parse(given[key], f"{field}.{key}") if key in given else None
