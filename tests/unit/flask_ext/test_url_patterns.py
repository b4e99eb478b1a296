"""URL rules become patterns that cover at least what the rule matches."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from werkzeug.exceptions import HTTPException
from werkzeug.routing import BaseConverter, Map, Rule

from flask_ext.url_patterns import NOWHERE, below, nowhere, patterns_of, probe
from gunicorn_admission.classify.table import RouteTable
from gunicorn_admission.settings.patterns import parse_pattern
from gunicorn_admission.settings.rules import RouteRule


class Everything(BaseConverter):
    regex = ".*/.*"


def texts(rule: str, mount: str = "", **options: Any) -> list[str]:
    bound = Rule(rule, endpoint="e", **options)
    urls = Map([bound], converters={"everything": Everything})
    return [pattern.text for pattern in patterns_of(bound, urls.converters, mount)]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("/", "=/"),
        ("/reports", "=/reports"),
        ("/reports/", "=/reports/"),
        ("/users/<int:id>", "/users/*"),
        ("/users/<id>/", "/users/*/"),
        ("/users/<int(min=1):id>/orders", "/users/*/orders"),
        ("/files/<name>.<ext>", "/files/*.*"),
        ("/v<int:version>/x", "/v*/x"),
        ("/static/<path:filename>", "/static/**"),
        ("/wiki/<path:page>/edit", "/wiki/**/edit"),
        ('/<any("a/b", c):which>/x', "/*/x"),
        ("/x/<everything:rest>", "/x/**"),
        ("//twice///x", "=/twice/x"),
        ("/a%20b", "=/a%20b"),
        ("/größe", "=/grÃ¶Ã\x9fe"),  # as PATH_INFO shows its bytes
    ],
)
def test_pattern(rule: str, expected: str) -> None:
    assert texts(rule) == [expected]


def test_both_spellings_where_the_last_slash_does_not_matter() -> None:
    assert texts("/a", strict_slashes=False) == ["=/a", "=/a/"]
    assert texts("/a/<b>/", strict_slashes=False) == ["/a/*/", "/a/*"]
    assert texts("/", strict_slashes=False) == ["=/"]


@pytest.mark.parametrize("rule", ["/<path:a>/x/<path:b>", "/pre-<path:rest>", "/<path:a>.txt"])
def test_no_pattern_says_it(rule: str) -> None:
    assert texts(rule) == []


def test_mount() -> None:
    assert texts("/users/<id>", mount="/api/v1") == ["/api/v1/users/*"]
    assert below("/api", parse_pattern("=/x")) == parse_pattern("=/api/x")
    assert below("/api", parse_pattern("/x/*")).text == "/api/x/*"
    assert below("/api", parse_pattern("/")) == parse_pattern("/api")


def test_a_pattern_without_paths() -> None:
    pattern = nowhere("shop.orders")
    table = RouteTable([(RouteRule(pattern=pattern), True)])
    assert pattern.text == NOWHERE
    assert nowhere("a") != nowhere("b")
    shown = "/\u2205/shop.orders"
    assert table.match("GET", shown)  # it is a pattern ...
    with pytest.raises(UnicodeEncodeError):
        shown.encode("latin-1")  # ... of a path that no PATH_INFO can be


def numbered(text: str) -> str:
    """The same rule with a name of its own for each variable."""
    count = itertools.count()
    return re.sub("x>", lambda _: f"x{next(count)}>", text)


word = st.text(st.sampled_from("ab1.é*%"), min_size=1, max_size=3)
variable = st.sampled_from(["<x>", "<int:x>", "<path:x>", "<any(a, b):x>", "<float:x>"])
segment = st.one_of(word, variable, st.tuples(word, variable).map("".join))
rules = st.lists(segment, max_size=4).map(lambda parts: numbered("/" + "/".join(parts)))
path_text = st.lists(st.text(st.sampled_from("ab1.é*%-"), min_size=1, max_size=4), max_size=5).map(
    lambda parts: "/" + "/".join(parts)
)


@given(rules, st.sampled_from(["", "/"]), st.booleans(), path_text, st.sampled_from(["", "/"]))
def test_patterns_cover_what_werkzeug_matches(
    text: str, last: str, strict: bool, path: str, path_last: str
) -> None:
    rule = Rule(text + last, endpoint="e", strict_slashes=strict)
    urls = Map([rule])
    patterns = patterns_of(rule, urls.converters)
    assume(patterns)
    assume(path + path_last != "//")  # Werkzeug ignores all but one of the first slashes
    table = RouteTable([(RouteRule(pattern=pattern), True) for pattern in patterns])
    for asked in {path + path_last, probe(patterns[0]).encode("latin-1").decode()}:
        try:
            urls.bind("localhost").match(asked)
        except HTTPException:
            continue
        shown = asked.encode().decode("latin-1")
        assert table.match("GET", shown), (text, asked)


@given(rules)
def test_a_probe_is_covered(text: str) -> None:
    rule = Rule(text, endpoint="e")
    urls = Map([rule])
    for pattern in patterns_of(rule, urls.converters):
        assert RouteTable([(RouteRule(pattern=pattern), True)]).match("GET", probe(pattern))
