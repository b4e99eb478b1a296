"""Route rules: the short forms, the tables, the errors that name the field inside."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gunicorn_admission.core.types import Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.rules import RouteRule, RuleLike, find_conflict, parse_rule


@pytest.mark.parametrize(
    ("written", "priority"),
    [
        ("high", Priority.HIGH),
        ("default", Priority.DEFAULT),
        (" LOW ", Priority.LOW),
        (Priority.HIGH, Priority.HIGH),
        ({"priority": "low"}, Priority.LOW),
        ({}, None),
        ({"priority": None}, None),
    ],
)
def test_priority(written: RuleLike, priority: Priority | None) -> None:
    rule = parse_rule("/a", written)
    assert rule.priority is priority
    assert not rule.exempt


@pytest.mark.parametrize("written", ["exempt", {"priority": "exempt"}])
def test_exempt(written: RuleLike) -> None:
    rule = parse_rule("/a", written)
    assert rule.exempt
    assert rule.priority is None


def test_a_full_table() -> None:
    rule = parse_rule(
        "/reports",
        {
            "priority": "low",
            "cap": 4,
            "share": 0.25,
            "deadline": "10s",
            "retries": False,
            "stream": True,
            "release_on": "first_byte",
            "name": "reports",
            "methods": ["post"],
        },
    )
    assert rule == RouteRule(
        pattern=rule.pattern,
        methods=frozenset({"POST"}),
        name="reports",
        priority=Priority.LOW,
        share=0.25,
        cap=4,
        deadline=10.0,
        retries=False,
        stream=True,
        release_on="first_byte",
    )
    assert rule.class_name == "reports"
    assert parse_rule("/reports", rule) is rule


def test_class_name_is_the_pattern_unless_given() -> None:
    assert parse_rule("/a/*", "low").class_name == "/a/*"


def test_one_method_needs_no_list() -> None:
    assert parse_rule("/a", {"methods": "get"}).methods == frozenset({"GET"})


@pytest.mark.parametrize(
    ("written", "field", "said"),
    [
        ("hihg", "routes['/a']", "did you mean 'high'?"),
        (3, "routes['/a']", "write a priority or a table"),
        ({"priority": "lo"}, "routes['/a'].priority", "did you mean 'low'?"),
        ({"prioritty": "low"}, "routes['/a'].prioritty", "did you mean 'priority'?"),
        ({"cap": 0}, "routes['/a'].cap", "an integer from 1"),
        ({"cap": 2.5}, "routes['/a'].cap", "an integer from 1"),
        ({"cap": True}, "routes['/a'].cap", "an integer from 1"),
        ({"share": 1}, "routes['/a'].share", "above 0 and below 1"),
        ({"share": 0}, "routes['/a'].share", "above 0 and below 1"),
        ({"share": "half"}, "routes['/a'].share", "above 0 and below 1"),
        ({"deadline": "0s"}, "routes['/a'].deadline", "a duration above 0"),
        ({"deadline": []}, "routes['/a'].deadline", "a duration above 0"),
        ({"deadline": "soon"}, "routes['/a'].deadline", "a duration"),
        ({"retries": 1}, "routes['/a'].retries", "true or false"),
        ({"stream": "yes"}, "routes['/a'].stream", "true or false"),
        ({"release_on": "first-byte"}, "routes['/a'].release_on", "did you mean 'first_byte'?"),
        ({"name": ""}, "routes['/a'].name", "1 to 64 printable"),
        ({"name": "x" * 65}, "routes['/a'].name", "1 to 64 printable"),
        ({"name": "a\nb"}, "routes['/a'].name", "1 to 64 printable"),
        ({"name": "(other)"}, "routes['/a'].name", "names in parentheses are ours"),
        ({"methods": []}, "routes['/a'].methods", "leave it out for all"),
        ({"methods": ["GET", "P T"]}, "routes['/a'].methods", "'P T' is none"),
        ({"methods": 5}, "routes['/a'].methods", "HTTP methods"),
        ({"priority": "exempt", "cap": 2}, "routes['/a'].cap", "no class of its own"),
    ],
)
def test_errors_name_the_field_inside(written: RuleLike, field: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_rule("/a", written)
    assert caught.value.field == field
    assert said in str(caught.value)


def conflict(rules: Mapping[str, RuleLike]) -> tuple[str, str] | None:
    pair = find_conflict(parse_rule(path, rule) for path, rule in rules.items())
    return pair and (pair[0].pattern.text, pair[1].pattern.text)


def test_conflict_of_spellings_and_of_stars_in_any_order() -> None:
    assert conflict({"/a": "high", "/a/": "low"}) == ("/a", "/a/")
    assert conflict({"/a/": "low", "/a": "high"}) == ("/a", "/a/")
    assert conflict({"/a/x*": "high", "/b": "low", "/a/*x": "low"}) == ("/a/*x", "/a/x*")


def test_no_conflict_between_equal_rules_other_methods_or_other_paths() -> None:
    assert conflict({"/a": "high", "/a/": "high"}) is None
    get, post = {"priority": "high", "methods": ["GET"]}, {"priority": "low", "methods": ["POST"]}
    assert conflict({"/a": get, "/a/": post}) is None
    assert conflict({"/a": get, "/a/": "low"}) == ("/a", "/a/")
    assert (
        conflict({"/a": "high", "/a/b": "low", "=/a": "low", "/b*": "low", "/c*": "high"}) is None
    )
