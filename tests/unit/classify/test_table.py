"""The compiled table against a naive reading of the rules, and against hostile paths."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gunicorn_admission.classify.table import RouteTable
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.patterns import Pattern, parse_pattern
from gunicorn_admission.settings.rules import RouteRule


def table(*patterns: str) -> RouteTable[str]:
    return RouteTable((RouteRule(pattern=parse_pattern(text)), text) for text in patterns)


@pytest.mark.parametrize(
    ("pattern", "covered", "others"),
    [
        ("/payment", ["/payment", "/payment/", "/payment/1"], ["/paymentx", "/", "//payment"]),
        ("/", ["/", "/a", "//", "/a/b"], []),
        ("/a/b", ["/a/b", "/a/b/c"], ["/a", "/a/bc", "/b/a/b"]),
        ("=/a", ["/a"], ["/a/", "/a/b", "/"]),
        ("=/a/", ["/a/"], ["/a"]),
        ("=/", ["/"], ["//", "/a"]),
        ("/a/*", ["/a/b", "/a/\n"], ["/a", "/a/", "/a/b/", "/a/b/c"]),
        ("/a/*/c", ["/a/b/c"], ["/a/c", "/a//c", "/a/b/c/", "/a/b/b/c"]),
        ("/a/x*z", ["/a/xz", "/a/xyz", "/a/xzz"], ["/a/xzy", "/a/x/z", "/a/x"]),
        ("/a/*b*b*", ["/a/bb", "/a/xbxbx"], ["/a/b", "/a/xb", "/a/b/b"]),
        ("/a/**", ["/a/b", "/a/b/c", "/a//", "/a/\n"], ["/a", "/a/", "/ab"]),
        ("/a/**/z", ["/a/b/z", "/a/b/c/z", "/a/z/z"], ["/a/z", "/a//z", "/a/b/z/", "/a/b"]),
        ("/**/z*", ["/a/z", "/a/b/zz"], ["/z", "/a/yz"]),
        ("/*.json", ["/a.json", "/.json"], ["/ajson", "/a/b.json"]),
        ("/caf%C3%A9", ["/caf\xc3\xa9"], ["/caf\xe9", "/caf"]),
    ],
)  # fmt: skip
def test_what_a_pattern_covers(pattern: str, covered: list[str], others: list[str]) -> None:
    rules = table(pattern)
    assert [path for path in covered if rules.match("GET", path) is None] == []
    assert [path for path in others if rules.match("GET", path) is not None] == []


@pytest.mark.parametrize(
    ("path", "decides"),
    [
        ("/a", "=/a"),
        ("/a/x", "/a/x"),
        ("/a/z", "/a/*"),
        ("/a/yy", "/a/y*"),
        ("/a/y/z", "/a/**"),
        ("/a/q/c", "/a/*/c"),
        ("/a/x/c", "/a/*/c"),
        ("/a/yyyyyy", "/*/yyyyyy"),
        ("/b", "/"),
        ("/a/", "/a"),
    ],
)
def test_the_most_specific_decides_whatever_the_order(path: str, decides: str) -> None:
    patterns = ["/", "/a", "=/a", "/a/x", "/a/*", "/a/y*", "/a/**", "/a/*/c", "/*/yyyyyy"]
    for seed in range(10):
        random.Random(seed).shuffle(patterns)
        assert table(*patterns).match("GET", path) == decides


def test_methods() -> None:
    def rule(text: str, *methods: str) -> tuple[RouteRule, str]:
        pattern = parse_pattern(text)
        return RouteRule(pattern=pattern, methods=frozenset(methods) or None), text

    rules = RouteTable([rule("/a/b", "POST"), rule("/a"), rule("=/x", "GET", "HEAD")])
    assert rules.match("POST", "/a/b") == "/a/b"
    assert rules.match("post", "/a/b") == "/a/b"
    assert rules.match("GET", "/a/b") == "/a"
    assert rules.match("BREW", "/a/b") == "/a"
    assert rules.match("HEAD", "/x") == "=/x"
    assert rules.match("POST", "/x") is None


def test_the_earlier_of_two_equally_specific_rules_decides() -> None:
    one, two = (RouteRule(pattern=parse_pattern(text)) for text in ("/a/*x", "/a/x*"))
    assert RouteTable([(one, 1), (two, 2)]).match("GET", "/a/xx") == 1
    assert RouteTable([(two, 2), (one, 1)]).match("GET", "/a/xx") == 2
    same = RouteRule(pattern=parse_pattern("/a"))
    assert RouteTable([(same, 1), (same, 2)]).match("GET", "/a") == 1


# A second reading of the same rules, as simple as it can be.


def covers(pattern: Pattern, path: str) -> bool:
    names = path[1:].split("/")
    if pattern.exact:
        return path == pattern.literal_path
    if not pattern.starred:
        return [(name,) for name in names][: len(pattern.segments)] == list(pattern.segments)
    return spans(pattern.segments, path)


def spans(segments: tuple[tuple[str, ...], ...], path: str) -> bool:
    if not segments:
        return path == ""
    if not path.startswith("/"):
        return False
    first, rest = segments[0], segments[1:]
    if first == ():
        return any(spans(rest, path[end:]) for end in range(2, len(path) + 1))
    end = path.find("/", 1)
    name, after = (path[1:], "") if end < 0 else (path[1:end], path[end:])
    whole = not any(first) and len(first) > 1
    return glob("*".join(first), name) and not (whole and not name) and spans(rest, after)


def glob(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(glob(pattern[1:], text[end:]) for end in range(len(text) + 1))
    return text[:1] == pattern[0] and glob(pattern[1:], text[1:])


segment = st.text("ab*", min_size=1, max_size=4)
pattern_text = st.builds(
    lambda exact, names: ("=" if exact else "") + "/" + "/".join(names),
    st.booleans(),
    st.lists(segment, max_size=4),
)
path_text = st.lists(st.text("ab", max_size=4), min_size=1, max_size=5).map(
    lambda names: "/" + "/".join(names)
)


def parsed(texts: list[str]) -> list[Pattern]:
    patterns = []
    for text in texts:
        try:
            patterns.append(parse_pattern(text))
        except ConfigError:
            continue
    return patterns


@given(st.lists(pattern_text, max_size=8).map(parsed), st.lists(path_text, max_size=8))
def test_agrees_with_the_naive_reading(patterns: list[Pattern], paths: list[str]) -> None:
    rules = RouteTable((RouteRule(pattern=pattern), pattern) for pattern in patterns)
    for path in paths:
        decided = rules.match("GET", path)
        covering = [pattern for pattern in patterns if covers(pattern, path)]
        best = max((pattern.specificity for pattern in covering), default=None)
        assert (decided and decided.specificity) == best
        assert decided is None or decided in covering


@pytest.mark.parametrize(
    "path",
    ["/p/" + "a" * 8000, "/p" * 4000, "/" * 8000, "/p/" + "ab" * 4000, "/p/" + "a/" * 4000],
    ids=lambda path: path[:6],
)
def test_hostile_paths_do_not_cost_a_power_of_their_length(path: str) -> None:
    # With plain `.*` for each star the first one takes longer than anybody can wait.
    rules = table("/p/" + "*a" * 12 + "*b", "/p/**/x*a*a*a*a*y", "/" + "*p" * 12 + "/**/z")
    assert rules.match("GET", path + "!") is None
