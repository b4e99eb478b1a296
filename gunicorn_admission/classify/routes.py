"""The classifier: which class, priority and policy a request has, by its method and path."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, overload

from attrs import evolve, field, frozen

from gunicorn_admission.classify.request_class import RequestClass
from gunicorn_admission.classify.request_line import names_script, read_request_line
from gunicorn_admission.classify.table import RouteTable
from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.core.types import Priority
from gunicorn_admission.settings.check import form_classes, refuse_conflict
from gunicorn_admission.settings.partitions import ALL, DEFAULT, EXEMPT, OTHER
from gunicorn_admission.settings.patterns import parse_pattern
from gunicorn_admission.settings.rules import RouteRule, RuleLike, parse_rule
from gunicorn_admission.settings.schema import EXEMPT_DEFAULTS, Settings

__all__ = ["CACHED_PATHS", "ENDPOINTS", "Classifier"]

CACHED_PATHS: Final = 4096
"""Requests remembered; when full, all are forgotten: cheaper than to choose, and bounded."""

ENDPOINTS: Final = 64
"""First path segments that get a class of their own; later ones share ``(other)``."""

_LONGEST_CACHED: Final = 256  # bounds the memory that the paths of strangers can take
_PROBES: Final = frozenset({"GET", "HEAD"})

# As settings.partitions.ENDPOINT, in place: slashes, then a name that ends the segment.
_FIRST_SEGMENT: Final = re.compile(r"/*+([A-Za-z0-9_~-][A-Za-z0-9_.~-]{0,39})?(?![^/])").match
_SLASHES: Final = re.compile(r"/{2,}").sub
_DOT_SEGMENT: Final = re.compile(r"/\.\.?(?![^/])").search


@frozen
class _Compiled:
    """Rules as of now and what was found by them: replaced as one, so never mixed."""

    table: RouteTable[RequestClass]
    policies: Mapping[str, PartitionPolicy]
    rest: RequestClass
    endpoints: dict[str, RequestClass]
    cache: dict[tuple[str, str], RequestClass] = field(factory=dict)
    lines: dict[bytes, RequestClass] = field(factory=dict)


class Classifier:
    """
    Tells the class of each request by its method and path, and by nothing a client may claim.

    A rule decides where one covers the request; the most specific pattern wins, whatever
    the order. Without one, the class is the first path segment, or the default, as
    ``partition_by`` says. Headers are never read: a client that could name its own
    priority would name the highest.

    Args:
        settings: ``routes``, ``exempt``, ``exempt_health``, ``status_path``, ``share``,
            ``cap`` and ``partition_by`` are used.
        script_name: Where the application is mounted by the server's environment variable
            ``SCRIPT_NAME``; only :meth:`classify_head` needs it.

    Thread safety: every method may be called from any thread; classifying takes no lock
    except when a first path segment is seen for the first time.
    """

    __slots__ = ("_added", "_compiled", "_learned", "_lock", "_script_name", "_settings")

    def __init__(self, settings: Settings, *, script_name: str = "") -> None:
        self._settings: Final = settings
        self._script_name: Final = script_name
        self._lock: Final = threading.Lock()  # guards _added, _learned and the endpoints
        self._added: tuple[RouteRule, ...] = ()
        self._learned: set[str] = set()
        self._compiled = self._compile(())

    @property
    def policies(self) -> Mapping[str, PartitionPolicy]:
        """Every class that rules, shares or caps name; endpoints appear with their requests."""
        return self._compiled.policies

    def classify(self, method: str, path: str) -> RequestClass:
        """
        Return the class of a request; about 0.2 us when seen before, some us at most.

        Args:
            method: ``REQUEST_METHOD``.
            path: ``PATH_INFO``, as in PEP 3333: decoded, bytes as latin-1.
        """
        compiled = self._compiled
        if len(path) > _LONGEST_CACHED:
            return self._decide(compiled, method, path)
        key = (method, path)
        found = compiled.cache.get(key)
        if found is None:
            found = self._decide(compiled, method, path)
            if len(compiled.cache) >= CACHED_PATHS:
                compiled.cache.clear()
            compiled.cache[key] = found
        return found

    def classify_head(self, head: bytes) -> RequestClass | None:
        """
        Return the class of a raw HTTP/1 request, the same as after the parser.

        Args:
            head: The request from its first byte, at least its first line with CRLF.

        Returns:
            ``None`` where only the parser can tell; see
            :func:`~gunicorn_admission.classify.request_line.read_request_line`.
        """
        compiled = self._compiled
        end = head.find(b"\r\n", 0, _LONGEST_CACHED)
        line = head[:end]
        if end > 0 and not names_script(head):
            found = compiled.lines.get(line)
            if found is not None:
                return found
        read = read_request_line(head, self._script_name)
        if read is None:
            return None
        found = self.classify(*read)
        if end > 0:
            if len(compiled.lines) >= CACHED_PATHS:
                compiled.lines.clear()
            compiled.lines[line] = found
        return found

    @overload  # in two, or a checker cannot infer the type of a mixed table
    def add_rules(self, rules: Mapping[str, RuleLike]) -> None: ...
    @overload
    def add_rules(self, rules: Iterable[RouteRule]) -> None: ...
    def add_rules(self, rules: Mapping[str, RuleLike] | Iterable[RouteRule]) -> None:
        """
        Add rules while running, such as those of decorated views.

        A rule of the settings wins over an added one for the same pattern, so that whoever
        runs the application has the last word. Adding a rule twice is harmless.

        Args:
            rules: As the setting ``routes``, or parsed rules where one pattern has several.

        Raises:
            ConfigError: A rule is invalid or contradicts another added one; nothing changes.
        """
        if isinstance(rules, Mapping):
            rules = [parse_rule(pattern, rule) for pattern, rule in rules.items()]
        with self._lock:
            added = (*self._added, *(rule for rule in rules if rule not in self._added))
            refuse_conflict(added)
            self._compiled = self._compile(added)
            self._added = added

    def _compile(self, added: tuple[RouteRule, ...]) -> _Compiled:
        own = self._settings.rules
        # Ours come first: between equally specific patterns the earlier rule decides.
        rules = (*own, *(rule for rule in added if not any(one.covers(rule) for one in own)))
        policies = form_classes(self._settings, rules)
        divided = self._settings.partition_by != "none"
        entries = [(rule, _of_rule(rule, policies, divided)) for rule in rules]
        entries += [(rule, _of_rule(rule, policies, divided)) for rule in self._built_in(rules)]
        rest = {"endpoint": OTHER, "route": DEFAULT, "none": ALL}[self._settings.partition_by]
        return _Compiled(
            table=RouteTable(entries),
            policies=policies,
            rest=_of_name(rest, policies),
            endpoints={n: _of_name(n, policies) for n in self._learned.union(policies)},
        )

    def _built_in(self, rules: Iterable[RouteRule]) -> Iterator[RouteRule]:
        """Return the exempt rules that come with the package, less what the user decided."""
        if self._settings.status_path is not None:
            yield parse_rule(self._settings.status_path, "exempt")
        if not self._settings.exempt_health:
            return
        decided = {(rule.pattern.literal_path or "").rstrip("/") for rule in rules}
        for path in EXEMPT_DEFAULTS:
            if path not in decided:
                for spelling in (f"={path}", f"={path}/"):
                    yield RouteRule(pattern=parse_pattern(spelling), methods=_PROBES, exempt=True)

    def _decide(self, compiled: _Compiled, method: str, path: str) -> RequestClass:
        if not path.startswith("/"):
            path = f"/{path}"  # "*" of OPTIONS, or nothing after the host
        # Some layers resolve dot segments and repeated slashes and some do not. So neither is
        # a way around a rule, and a bypass must hold either way.
        odd = "//" in path
        if odd:
            path = _SLASHES("/", path)
        found = compiled.table.match(method, path)
        if found is not None and not (found.exempt and (odd or _DOT_SEGMENT(path))):
            return found
        if self._settings.partition_by != "endpoint":
            return compiled.rest
        segment = _FIRST_SEGMENT(path)
        if segment is None:
            return compiled.rest
        name = f"/{segment[1] or ''}"
        return compiled.endpoints.get(name) or self._learn(name, compiled.rest)

    def _learn(self, name: str, rest: RequestClass) -> RequestClass:
        if len(self._learned) >= ENDPOINTS:
            return rest
        with self._lock:
            compiled = self._compiled
            if name not in compiled.endpoints:
                if len(self._learned) >= ENDPOINTS:
                    return rest
                self._learned.add(name)
                compiled.endpoints[name] = _of_name(name, compiled.policies)
            return compiled.endpoints[name]


def _of_rule(
    rule: RouteRule, policies: Mapping[str, PartitionPolicy], divided: bool
) -> RequestClass:
    if rule.exempt:
        policy, priority = PartitionPolicy(name=EXEMPT, sampled=False), Priority.HIGH
    else:
        policy = policies[rule.class_name]
        policy = policy if divided else evolve(policy, name=ALL)
        priority = Priority.DEFAULT if rule.priority is None else rule.priority
    return RequestClass(
        exempt=rule.exempt,
        priority=priority,
        partition=policy.name,
        policy=policy,
        rule=rule.pattern.text,
    )


def _of_name(name: str, policies: Mapping[str, PartitionPolicy]) -> RequestClass:
    return RequestClass(
        exempt=False,
        priority=Priority.DEFAULT,
        partition=name,
        policy=policies.get(name) or PartitionPolicy(name=name),
    )
