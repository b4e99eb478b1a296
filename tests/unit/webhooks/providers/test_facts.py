"""Facts are data that can be checked and shown."""

from __future__ import annotations

from datetime import date

import attrs
import pytest

from gunicorn_admission.webhooks.providers import load_provider, provider_names
from gunicorn_admission.webhooks.providers.facts import Coverage, Facts, Retries


def facts(**changed: object) -> Facts:
    values: dict[str, object] = {
        "name": "acme",
        "title": "Acme",
        "docs": "https://acme.example",
        "checked": date(2026, 11, 30),
        "covers": Coverage.BODY,
        "event_id": None,
        "retries": Retries(count=0),
    }
    return Facts(**{**values, **changed})  # type: ignore[arg-type]


def test_unsure_of_what_is_no_fact() -> None:
    assert facts(unsure=("deadline", "retries")).unsure == ("deadline", "retries")
    with pytest.raises(ValueError, match="'deadlin'"):
        facts(unsure=("deadlin",))


@pytest.mark.parametrize("name", provider_names())
def test_doubt_is_about_something_that_is_said(name: str) -> None:
    known = load_provider(name).facts
    may_be_open = {"deadline", "disable", "respects_retry_after"}
    for doubted in set(known.unsure) - may_be_open:
        assert getattr(known, doubted)


def test_are_immutable() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        facts().name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "deadline", "retries", "failures"),
    [("github", 10.0, False, None), ("shopify", 5.0, True, 8), ("slack", 3.0, True, None)],
)
def test_what_admission_decides_by(
    name: str, deadline: float, retries: bool, failures: int | None
) -> None:
    known = load_provider(name).facts
    assert known.deadline == deadline
    assert known.retries_at_all is retries
    assert (known.disable.failures if known.disable else None) == failures
