"""Bodies read without trust, and the exact parts of a batch."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gunicorn_admission.webhooks.providers.payload import (
    as_id,
    as_number,
    as_object,
    as_text,
    digest,
    read_json,
    split,
)

repeatable = settings(deadline=None, derandomize=True, max_examples=200)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@repeatable
@given(
    elements=st.lists(values, max_size=4),
    indent=st.sampled_from([None, 0, 2]),
    ascii_only=st.booleans(),
    around=st.sampled_from(["", " ", "\r\n", "\t\n "]),
    member=st.sampled_from([None, "events", "é", ""]),
)
def test_parts_are_what_was_written(
    elements: list[object], indent: int | None, ascii_only: bool, around: str, member: str | None
) -> None:
    whole: object = elements if member is None else {"before": [1], member: elements, "after": {}}
    text = json.dumps(whole, indent=indent, ensure_ascii=ascii_only)
    try:
        body = (around + text + around).encode()
    except UnicodeEncodeError:  # a lone surrogate, which only \\u can write
        body = (around + json.dumps(whole, indent=indent) + around).encode()
    parts = split(body, member)
    assert parts is not None
    assert [repr(value) for value, _ in parts] == [repr(value) for value in elements]
    assert all(part in body for _, part in parts)
    assert [repr(read_json(part)) for _, part in parts] == [repr(value) for value in elements]


def test_parts_keep_numbers_that_no_float_can_hold() -> None:
    body = b'[ {"id":12345678901234567890123,"x":1.10000000000000000000001} ,2 ]'
    parts = split(body)
    assert parts is not None
    assert [part for _, part in parts] == [
        b'{"id":12345678901234567890123,"x":1.10000000000000000000001}',
        b"2",
    ]


def test_of_two_members_the_last_counts_as_for_json() -> None:
    body = b'{"events": [1], "x": {"events": [3]}, "events": [2]}'
    assert split(body, "events") == [(2, b"2")]
    assert as_object(read_json(body))["events"] == [2]


@pytest.mark.parametrize(
    "body",
    [
        b"", b" ", b"{}", b'"[]"', b"null", b"[", b"[1", b"[1,", b"[1,]", b"[,1]", b"[1 2]",
        b"[1]]", b"[] x", b"\xff[]", b"\xef\xbb\xbf[]", b"[" * 100_000, b'{"events": [1]}',
    ],
)  # fmt: skip
def test_what_is_no_array_is_no_batch(body: bytes) -> None:
    assert split(body) is None


@pytest.mark.parametrize(
    "body",
    [
        b"[]", b"{}", b'{"events": {}}', b'{"events": [1]', b'{"events": [1],}',
        b'{"events" [1]}', b'{"events": 1}', b'{"other": [1]}', b'{"events": [1, ]}',
        b'{"a": ' * 100_000,
    ],
)  # fmt: skip
def test_what_has_no_such_member_is_no_batch(body: bytes) -> None:
    assert split(body, "events") is None


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"{", b"[" * 100_000, b"9" * 5000, b"\xef\xbb\xbf{}", b'{"a":1}x']
)
def test_what_is_no_json_reads_as_nothing(body: bytes) -> None:
    assert read_json(body) is None


def test_reads_json_in_utf_8_only() -> None:
    assert read_json('{"é": 1}'.encode()) == {"é": 1}
    assert read_json('{"a": 1}'.encode("utf-16")) is None


@pytest.mark.parametrize(
    "value", [None, True, 1.5, "", [], {}, "a\nb", "\ud800", "x" * 256, "\x00"]
)
def test_what_can_be_no_id(value: object) -> None:
    assert as_id(value) is None


@pytest.mark.parametrize("value", ["evt_1", 7, -7, 10**200])
def test_what_can_be_an_id(value: object) -> None:
    assert as_id(value) == str(value)


def test_an_id_of_too_many_digits_is_none() -> None:
    assert as_id(10**300) is None


@pytest.mark.parametrize(
    "value", [True, "1", None, -1, 10**15, 10**400, float("nan"), float("inf"), -0.5]
)
def test_what_can_be_no_time(value: object) -> None:
    assert as_number(value) is None


def test_what_can_be_a_time() -> None:
    assert as_number(1600112492) == 1600112492.0
    assert as_number(0.5) == 0.5


def test_other_values_are_empty_objects_and_no_texts() -> None:
    assert as_object([1]) == as_object(None) == {}
    assert as_text(7) is None


def test_digest_is_of_the_bytes() -> None:
    assert digest(b"a") == digest(b"a") != digest(b"b")
    assert digest(b"").startswith("sha256:")
