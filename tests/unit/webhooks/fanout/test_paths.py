"""Ordering keys: where they lie in an event."""

from __future__ import annotations

import pytest

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.fanout.paths import Path
from tests.unit.webhooks.fanout.test_filters import fields


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("source", "stripe"),
        ("$.type", "invoice.paid"),
        ("body.amount", "120"),
        ("body.items.1.sku", "b"),
        ("headers.Content-Type", "application/json"),
        ("headers.x-shop", None),  # two values: neither is the key
        ("headers.x-shop.1", "two"),
        ("body.items", None),
        ("body.items.7.sku", None),
        ("body.paid", None),
        ("body.note", None),
        ("body.amount.more", None),
        ("body.missing", None),
    ],
)
def test_key(text: str, key: str | None) -> None:
    assert Path(text).find(fields()) == key


@pytest.mark.parametrize("text", ["", "customer.id", "body.", "body..id", "bdy.id"])
def test_fault_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="order_by"):
        Path(text)


def test_key_is_bounded() -> None:
    key = Path("body.a").find(fields({"a": "x" * 1000}))
    assert key is not None
    assert len(key) == 255
