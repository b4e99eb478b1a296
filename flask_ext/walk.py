"""
From the views of an application to the route rules of the classifier.

A marked view's rule names its class: the endpoint, or the name that a decorator gives. Views
without marks need rules as well where the pattern of a marked one covers them: beside a low
``/users/<int:id>``, ``/users/me`` must not become low. Where patterns cannot tell two views
apart (``<int:id>`` from ``<slug>``) their requests go in front of the routing under the
higher of the two priorities and the class ``(other)``, and are classified for good behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from attrs import evolve, frozen
from flask import Flask
from werkzeug.routing import Rule

from flask_ext.decorators import Marks, marks_of
from flask_ext.url_patterns import NOWHERE, nowhere, patterns_of, probe
from gunicorn_admission.classify.table import RouteTable
from gunicorn_admission.core.types import Priority
from gunicorn_admission.settings.partitions import ENDPOINT, OTHER
from gunicorn_admission.settings.patterns import Pattern
from gunicorn_admission.settings.rules import RouteRule, find_conflict

__all__ = ["Walk", "walk"]


@frozen
class Walk:
    """
    The views of an application as they were at one time.

    Attributes:
        rules: For the classifier.
        intended: What holds for the requests of a URL rule once the routing has found it, by
            the rule's ``id`` (Werkzeug's rules have no hash), one entry for each set of methods.
        undecided: The ids of those that the path alone does not decide.
    """

    rules: tuple[RouteRule, ...] = ()
    intended: Mapping[int, tuple[RouteRule, ...]] = {}
    undecided: frozenset[int] = frozenset()

    def intention(self, url_rule: Rule | None, method: str) -> RouteRule | None:
        """Return what holds for a request after routing; ``None`` for nothing special."""
        for rule in self.intended.get(id(url_rule), ()):
            if rule.methods is None or method in rule.methods:
                return rule
        return None


class _Entry(NamedTuple):
    """One rule of ours for one URL rule and some of its methods."""

    url_rule: Rule
    marked: bool
    rule: RouteRule


def walk(app: Flask, mount: str = "") -> Walk:
    """
    Read the marks of all views and say what they mean.

    Args:
        app: Its URL map and view functions are read.
        mount: See :meth:`flask_ext.Admission.init_app`.
    """
    entries = [
        entry for url_rule in app.url_map.iter_rules() for entry in _of(app, url_rule, mount)
    ]
    marked = [entry for entry in entries if entry.marked]
    if not marked:
        return Walk()
    table = RouteTable([(entry.rule, True) for entry in marked])
    needed = [entry for entry in entries if entry.marked or _is_covered(entry.rule, table)]
    rules = _without_conflicts([entry.rule for entry in needed])
    undecided = {
        id(entry.url_rule)
        for entry, rule in zip(needed, rules, strict=True)
        if rule is not entry.rule or rule.pattern.text == NOWHERE
    }
    intended: dict[int, tuple[RouteRule, ...]] = {}
    for url_rule, marked_, rule in needed:
        key = id(url_rule)
        if marked_ and key in undecided:
            # Its class must exist with its share and cap, though no path leads to it.
            rules.append(evolve(rule, pattern=nowhere(url_rule.endpoint)))
        if marked_ or key in undecided:
            intended[key] = (*intended.get(key, ()), rule)
    return Walk(tuple(dict.fromkeys(rules)), intended, frozenset(undecided))


def _of(app: Flask, url_rule: Rule, mount: str) -> Iterator[_Entry]:
    """Return the rules that one URL rule stands for, with marks or without."""
    if url_rule.build_only or url_rule.websocket:
        return
    patterns = patterns_of(url_rule, app.url_map.converters, mount)
    for methods, marks, name in _by_method(url_rule, app.view_functions.get(url_rule.endpoint)):
        if marks is None:
            for pattern in patterns:
                rule = RouteRule(pattern=pattern, methods=methods, name=_class_by_path(pattern))
                yield _Entry(url_rule, False, rule)
        else:
            for pattern in patterns or (nowhere(url_rule.endpoint),):
                yield _Entry(url_rule, True, _rule(pattern, methods, marks, name))


def _by_method(
    url_rule: Rule, view: object
) -> Iterator[tuple[frozenset[str] | None, Marks | None, str]]:
    """Tell which marks hold for which methods, and the class name without one of the user's."""
    rest = set(url_rule.methods or ())
    if getattr(url_rule, "provide_automatic_options", False):
        rest.discard("OPTIONS")  # two views on one path would both claim them
    common = marks_of(view)
    special: dict[Marks, set[str]] = {}
    for method in rest:
        marks = marks_of(view, method)
        if marks is not None and marks != common:
            special.setdefault(marks, set()).add(method)
    for marks, methods in special.items():
        rest -= methods
        name = f"{url_rule.endpoint}.{min(methods - {'HEAD'} or methods).lower()}"
        yield frozenset(methods), marks, name
    if rest or not special:
        yield frozenset(rest) or None, common, url_rule.endpoint


def _rule(
    pattern: Pattern, methods: frozenset[str] | None, marks: Marks, endpoint: str
) -> RouteRule:
    if marks.exempt:
        return RouteRule(pattern=pattern, methods=methods, exempt=True)
    return RouteRule(
        pattern=pattern,
        methods=methods,
        name=marks.name or endpoint,
        priority=marks.priority,
        share=marks.share,
        cap=marks.cap,
        deadline=marks.deadline,
        stream=marks.stream,
        release_on=marks.release_on,
    )


def _class_by_path(pattern: Pattern) -> str:
    """The class that requests have without a rule, as far as the pattern tells it."""
    first = pattern.segments[0]
    name = f"/{first[0]}" if len(first) == 1 else ""
    return name if ENDPOINT.fullmatch(name) else OTHER


def _is_covered(rule: RouteRule, table: RouteTable[bool]) -> bool:
    path = probe(rule.pattern)
    return any(table.match(method, path) for method in rule.methods or ("",))


def _without_conflicts(rules: list[RouteRule]) -> list[RouteRule]:
    """Replace rules that compete; each round raises two of them, so there is a last one."""
    rules = list(rules)
    while pair := find_conflict(rules):
        highest = min(map(_weight, pair))
        for place, rule in enumerate(rules):
            if any(rule is one for one in pair):
                rules[place] = RouteRule(
                    pattern=rule.pattern, methods=rule.methods, name=OTHER, priority=highest
                )
    return rules


def _weight(rule: RouteRule) -> Priority:
    if rule.exempt:
        return Priority.HIGH
    return Priority.DEFAULT if rule.priority is None else rule.priority
