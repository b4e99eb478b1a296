"""Path patterns: what they may look like, which is more specific, which overlap."""

from __future__ import annotations

import pytest

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.patterns import REST, overlap, parse_pattern


@pytest.mark.parametrize(
    ("text", "exact", "segments"),
    [
        ("/", False, ()),
        ("/a", False, (("a",),)),
        ("/a/", False, (("a",),)),
        ("/a/b", False, (("a",), ("b",))),
        ("=/a", True, (("a",),)),
        ("=/a/", True, (("a",), ("",))),
        ("=/", True, (("",),)),
        ("/a/*", False, (("a",), ("", ""))),
        ("/a/b*c", False, (("a",), ("b", "c"))),
        ("/a/**", False, (("a",), REST)),
        ("/a/**/c", False, (("a",), REST, ("c",))),
        ("/caf%C3%A9", False, (("caf\xc3\xa9",),)),
        ("/café", False, (("caf\xc3\xa9",),)),
        ("/a%20b", False, (("a b",),)),
    ],
)
def test_parts(text: str, exact: bool, segments: tuple[tuple[str, ...], ...]) -> None:
    pattern = parse_pattern(text)
    assert (pattern.exact, pattern.segments, pattern.text) == (exact, segments, text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("payments", "start it with a slash: /payments"),
        ("=payments", "start it with a slash: =/payments"),
        ("", "start it with a slash"),
        ("/a?b=1", "only the path is matched"),
        ("/a#b", "only the path is matched"),
        ("/a b", "only the path is matched"),
        ("/a\n", "only the path is matched"),
        ("/a%2Fb", "write a slash"),
        ("=/a/*", "leave out the '='"),
        ("/a//b", "one slash"),
        ("//a", "one slash"),
        ("/a//", "one slash"),
        ("//", "one slash"),
        ("=/a//b", "one slash"),
        ("/a/../b", "without dot segments"),
        ("/./b", "without dot segments"),
        ("/a**", "whole segment"),
        ("/***", "whole segment"),
        ("/**/a/**", "once in a pattern"),
    ],
)
def test_refuses_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_pattern(text, "exempt")
    assert caught.value.field == "exempt"
    assert caught.value.value == text
    assert hint in caught.value.hint


def test_what_is_not_text_is_refused() -> None:
    with pytest.raises(ConfigError, match="a pattern is text"):
        parse_pattern(7)  # type: ignore[arg-type]


def test_a_last_slash_does_not_make_another_prefix() -> None:
    assert parse_pattern("/a/") == parse_pattern("/a")
    assert hash(parse_pattern("/a/")) == hash(parse_pattern("/a"))
    assert parse_pattern("=/a/") != parse_pattern("=/a")
    assert parse_pattern("/a") != "/a"


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ("=/a", "/a/b/c/d"),
        ("/a/b", "/a"),
        ("/a", "/"),
        ("/a/*/c", "/a/b"),
        ("/a/bc", "/a/b*c"),
        ("/a/*", "/a/**"),
        ("/a/*b", "/a/*b*"),
        ("/a/*/c", "/a/**/c"),
    ],
)
def test_more_specific(more: str, less: str) -> None:
    assert parse_pattern(more).specificity > parse_pattern(less).specificity


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("/a", "/a/"),
        ("/a/*x", "/a/x*"),
        ("/a/*/cc", "/a/b/*c"),
        ("/*/b", "/a/*"),
        ("/a/**/x", "/a/x/**"),
        ("/*ab*/c", "/a*b*/c"),
    ],
)
def test_overlaps(one: str, two: str) -> None:
    assert overlap(parse_pattern(one), parse_pattern(two))
    assert overlap(parse_pattern(two), parse_pattern(one))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("/a", "/b"),
        ("/a", "=/a"),
        ("/a", "/a/b"),
        ("/a/*x", "/a/*y"),
        ("/a/*", "/b/*"),
        ("/a/x*/c", "/a/y*/c"),
        ("/a/*/c", "/a/b*"),
        ("/a/*x/cc", "/a/x*c"),
        ("/a/*", "/a/**"),
    ],
)
def test_does_not_overlap(one: str, two: str) -> None:
    assert not overlap(parse_pattern(one), parse_pattern(two))
    assert not overlap(parse_pattern(two), parse_pattern(one))


def test_overlap_of_many_stars_is_found_in_polynomial_time() -> None:
    assert not overlap(parse_pattern("/" + "*a" * 60 + "*b"), parse_pattern("/" + "*a" * 60 + "*c"))
