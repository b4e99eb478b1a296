"""Secrets: never blank, never shown, accepted until their end."""

from __future__ import annotations

import copy
import pickle

import pytest

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.providers import Secret, load_provider


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("", "not blank"),
        (" \t\n", "not blank"),
        ("s3cr3t\n", "without white space"),
        (" s3cr3t", "without white space"),
        ("s3cr3t\ud800", "valid Unicode"),
        (b"s3cr3t", "text"),
        (None, "text"),
    ],
)
def test_refuses_what_cannot_work_without_showing_it(value: object, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        Secret(value)  # type: ignore[arg-type]
    assert "s3cr3t" not in str(caught.value)
    assert "s3cr3t" not in repr(caught.value.value)


def test_is_not_shown() -> None:
    secret = Secret("s3cr3t", not_after=5.0)
    for shown in (repr(secret), str(secret), f"{[secret]}"):
        assert "s3cr3t" not in shown
        assert "5.0" in shown


def test_is_active_until_its_end() -> None:
    assert Secret("a").is_active(1e12)
    ending = Secret("a", not_after=10.0)
    assert [ending.is_active(now) for now in (9.0, 10.0, 10.1)] == [True, True, False]


def test_is_compared_by_identity() -> None:
    assert Secret("a") != Secret("a")
    assert len({Secret("a"), Secret("a")}) == 2


def test_can_be_sent_to_another_process() -> None:
    for again in (copy.copy(Secret("a")), pickle.loads(pickle.dumps(Secret("a")))):
        assert again.value == "a"


def test_key_of_another_form_is_an_error_that_does_not_show_it() -> None:
    provider = load_provider("standard_webhooks")
    bad = Secret("whsec_s3cr3t!")
    headers = {"webhook-id": "a", "webhook-timestamp": "1", "webhook-signature": "v1,a"}
    for call in (
        lambda: provider.check_secret(bad),
        lambda: provider.verify(b"", headers, "", [bad], 1.0),
    ):
        with pytest.raises(ConfigError) as caught:
            call()
        assert "s3cr3t" not in str(caught.value)
