"""Filters: what matches, what does not, and what a faulty pattern is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.fanout.fields import Fields
from gunicorn_admission.webhooks.fanout.filters import Filter

BODY: dict[str, Any] = {
    "amount": 120,
    "ratio": 1.0,
    "paid": True,
    "note": None,
    "name": "Ärzte GmbH",
    "tags": ["new", "eu"],
    "none": [],
    "prefix": ["a field that is named as an operator"],
    "items": [{"sku": "a", "count": 1}, {"sku": "b", "count": 9}],
}


def fields(body: object = BODY, **other: Any) -> Fields:
    settings: dict[str, Any] = {
        "source": "stripe",
        "type": "invoice.paid",
        "headers": [("X-Shop", "one"), ("x-shop", "two"), ("Content-Type", "application/json")],
        **other,
    }
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Fields(body=raw, **settings)


MATCHING = [
    {},
    {"source": ["stripe"]},
    {"source": "stripe"},
    {"source": ["github", "stripe"], "type": ["invoice.paid"]},
    {"type": [{"prefix": "invoice."}]},
    {"type": [{"suffix": ".paid"}]},
    {"type": [{"equals-ignore-case": "INVOICE.PAID"}]},
    {"type": [{"wildcard": "in*.*d"}]},
    {"type": [{"wildcard": "*"}]},
    {"type": [{"anything-but": ["invoice.created", {"prefix": "charge."}]}]},
    {"headers": {"X-SHOP": ["two"]}},
    {"headers": {"x-other": [{"exists": False}]}},
    {"body": {"amount": [{"numeric": [">", 100, "<=", 120]}]}},
    {"body": {"amount": [120.0]}},
    {"body": {"ratio": [1]}},
    {"body": {"paid": [True]}},
    {"body": {"note": [None]}},
    {"body": {"name": [{"equals-ignore-case": "ÄRZTE GMBH"}]}},
    {"body": {"tags": ["eu"]}},
    {"body": {"none": [{"exists": False}]}},
    {"body": {"prefix": [{"prefix": "a field"}]}},
    {"body": {"items": {"sku": ["b"], "count": [9]}}},
    {"body": {"missing": {"deep": [{"exists": False}]}}},
    {"$or": [{"source": ["github"]}, {"type": ["invoice.paid"]}]},
    {"source": ["stripe"], "body": {"$or": [{"amount": [1]}, {"paid": [True]}]}},
]

NOT_MATCHING = [
    {"source": ["Stripe"]},
    {"source": ["stripe"], "type": ["other"]},
    {"type": [{"wildcard": "in*.*e"}]},
    {"type": [{"prefix": "paid"}]},
    {"type": [{"anything-but": {"prefix": "invoice."}}]},
    {"headers": {"x-shop": ["three"]}},
    {"headers": {"x-shop": [{"exists": False}]}},
    {"body": {"amount": ["120"]}},
    {"body": {"amount": [{"prefix": "12"}]}},
    {"body": {"ratio": [True]}},  # 1 is no true
    {"body": {"paid": [1]}},
    {"body": {"note": [False]}},
    {"body": {"missing": [None]}},  # null is not the same as absent
    {"body": {"missing": [{"anything-but": "x"}]}},
    {"body": {"name": [{"numeric": [">", 0]}]}},
    {"body": {"paid": [{"numeric": [">", 0]}]}},
    {"body": {"none": [{"exists": True}]}},
    {"body": {"items": {"sku": ["a"], "count": [9]}}},  # never in one element
    {"body": {"amount": {"deep": [1]}}},
    {"$or": [{"source": ["github"]}, {"type": ["other"]}]},
    {"source": ["github"], "$or": [{"type": ["invoice.paid"]}]},
    {"body": {"paid": [True], "$or": [{"amount": [1]}, {"amount": [2]}]}},
]


@pytest.mark.parametrize("pattern", MATCHING, ids=json.dumps)
def test_matches(pattern: dict[str, Any]) -> None:
    assert Filter(pattern).matches(fields())


@pytest.mark.parametrize("pattern", NOT_MATCHING, ids=json.dumps)
def test_does_not_match(pattern: dict[str, Any]) -> None:
    assert not Filter(pattern).matches(fields())


@pytest.mark.parametrize(
    ("pattern", "field", "says"),
    [
        ([], "filter", "an object"),
        ({"sorce": ["a"]}, "filter.sorce", "did you mean 'source'?"),
        ({"amount": [1]}, "filter.amount", "goes under body"),
        ({"type": []}, "filter.type", "would match nothing"),
        ({"type": {}}, "filter.type", "exists"),
        ({"type": {"prefix": "a"}}, "filter.type", '[{"prefix": ...}]'),
        ({"body": {"a": {"numeric": [">", 1]}}}, "filter.body.a", '[{"numeric": ...}]'),
        ({"body": {"a": {"anything-but": ["x"]}}}, "filter.body.a", "a list around an operator"),
        ({"type": [{"prefx": "a"}]}, "filter.type[0]", "did you mean 'prefix'?"),
        ({"type": [{"prefix": "a", "suffix": "b"}]}, "filter.type[0]", "one operator"),
        ({"type": ["a", {"prefix": 1}]}, "filter.type[1].prefix", "text"),
        ({"type": [{"prefix": ""}]}, "filter.type[0].prefix", "not empty"),
        ({"type": [["a"]]}, "filter.type[0]", "lists do not nest"),
        ({"type": [{"exists": "yes"}]}, "filter.type[0].exists", "true or false"),
        ({"type": [{"anything-but": []}]}, "filter.type[0].anything-but", "not wanted"),
        ({"body": {"a": [{"numeric": [">"]}]}}, "filter.body.a[0].numeric", "by turns"),
        ({"body": {"a": [{"numeric": ["!", 1]}]}}, "filter.body.a[0].numeric", "one of"),
        ({"body": {"a": [{"numeric": [">", "1"]}]}}, "filter.body.a[0].numeric", "a number"),
        ({"$or": {}}, "filter.$or", "a list of patterns"),
        ({"$or": [{"nope": [1]}]}, "filter.$or[0].nope", "goes under body"),
    ],
)
def test_fault_is_named(pattern: Any, field: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Filter(pattern)
    assert caught.value.field == field
    assert says in str(caught.value)


def test_pattern_may_not_be_bottomless() -> None:
    pattern: dict[str, Any] = {"body": ["x"]}
    for _ in range(50):
        pattern = {"body": pattern}
    with pytest.raises(ConfigError, match="at most 32 levels"):
        Filter(pattern)


@pytest.mark.parametrize("body", [b"", b"\xff", b"[" * 100_000, b"1" * 5000, b"<xml/>"])
def test_body_that_is_no_json_is_absent(body: bytes) -> None:
    assert not Filter({"body": {"a": [1]}}).matches(fields(body))
    assert Filter({"body": [{"exists": False}]}).matches(fields(body))
    assert Filter({"source": ["stripe"]}).matches(fields(body))


def test_form_is_read_too() -> None:
    form = fields(
        b"CallSid=CA1&Tag=a&Tag=b",
        headers={"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
    )
    assert Filter({"body": {"CallSid": ["CA1"], "Tag": ["b"]}}).matches(form)
    assert not Filter({"body": {"CallSid": ["CA2"]}}).matches(form)
    declared = fields({"a": 1}, headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert Filter({"body": {"a": [1]}}).matches(declared)  # JSON all the same


def test_unknown_type_is_absent() -> None:
    assert Filter({"type": [{"exists": False}]}).matches(fields(type=None))
    assert not Filter({"type": [{"anything-but": "x"}]}).matches(fields(type=None))


def test_wildcard_takes_no_time_over_a_hostile_value() -> None:
    pattern = Filter({"body": {"a": [{"wildcard": "*a" * 30 + "b"}]}})
    assert not pattern.matches(fields({"a": "a" * 5_000}))
