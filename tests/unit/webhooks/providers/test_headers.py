"""Headers as a verifier may use them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from werkzeug.datastructures import EnvironHeaders
from werkzeug.datastructures import Headers as WerkzeugHeaders

from gunicorn_admission.webhooks.providers.headers import LONGEST_HEADER, LONGEST_ID, Headers
from gunicorn_admission.webhooks.providers.outcome import Reason, Refusal, Refused


def refused(call: Callable[[str], object], name: str = "X-A") -> Refused:
    with pytest.raises(Refusal) as caught:
        call(name)
    return caught.value.refused


def test_finds_a_header_in_any_case_without_the_blanks_around_it() -> None:
    headers = Headers({"x-A": " value "})
    assert headers.find("X-a") == headers.require("x-a") == "value"
    assert headers.find("X-B") is None


def test_takes_what_frameworks_give() -> None:
    environ = {"HTTP_X_A": "1", "CONTENT_TYPE": "text/plain"}
    for given in (EnvironHeaders(environ), WerkzeugHeaders([("X-A", "1"), ("X-B", "2")])):
        assert Headers(given).find("X-A") == "1"
    assert Headers(EnvironHeaders(environ)).find("Content-Type") == "text/plain"


def test_refuses_a_header_that_comes_twice_even_with_one_value() -> None:
    headers = Headers([("X-A", "1"), ("x-a", "1")])
    assert refused(headers.find) == Refused(reason=Reason.DUPLICATE_HEADER, header="X-A")
    assert headers.hint("X-A") is None


@pytest.mark.parametrize("value", ["", " "])
def test_takes_an_empty_header_for_none_where_it_is_needed(value: str) -> None:
    headers = Headers({"X-A": value})
    assert refused(headers.require) == Refused(reason=Reason.MISSING_HEADER, header="X-A")
    assert headers.find_id("X-A") is None
    assert headers.hint("X-A") is None


def test_bounds_a_header() -> None:
    assert Headers({"X-A": "a" * LONGEST_HEADER}).require("X-A")
    longer = Headers({"X-A": "a" * (LONGEST_HEADER + 1)})
    assert refused(longer.find) == Refused(reason=Reason.HEADER_TOO_LONG, header="X-A")


def test_bounds_an_id() -> None:
    assert Headers({"X-A": "a" * LONGEST_ID}).find_id("X-A") == "a" * LONGEST_ID
    longer = Headers({"X-A": "a" * (LONGEST_ID + 1)})
    assert refused(longer.find_id).reason is Reason.HEADER_TOO_LONG
    assert longer.hint("X-A") is None


@pytest.mark.parametrize("value", ["a b", "a,b", "a\tb", "é"])
def test_refuses_what_cannot_be_one_id(value: str) -> None:
    headers = Headers({"X-A": value})
    assert refused(headers.find_id) == Refused(reason=Reason.MALFORMED_HEADER, header="X-A")


def test_ignores_a_description_that_is_unusable() -> None:
    assert Headers({"X-A": "push event"}).hint("X-A") == "push event"
    assert Headers({"X-A": "\x00"}).hint("X-A") is None
    assert Headers({}).hint("X-A") is None
