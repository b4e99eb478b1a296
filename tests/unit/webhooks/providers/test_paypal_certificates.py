"""Where PayPal's certificates may come from, and that each is fetched once."""

from __future__ import annotations

import pytest

from gunicorn_admission.testing import FakeClock
from gunicorn_admission.webhooks.providers.paypal_certificates import Certificates, is_trusted

BASE = "https://api.paypal.com/v1/notifications/certs/"
URL = BASE + "CERT-360caa42"


@pytest.mark.parametrize(
    "host",
    ["api.paypal.com", "api-m.paypal.com", "api.sandbox.paypal.com", "api-m.sandbox.paypal.com"],
)
def test_trusts_the_hosts_of_paypal(host: str) -> None:
    assert is_trusted(f"https://{host}/v1/notifications/certs/CERT-1_a")


@pytest.mark.parametrize(
    "url",
    [
        "http://api.paypal.com/v1/notifications/certs/A",
        "https://api.paypal.com.evil.test/v1/notifications/certs/A",
        "https://evil.test/api.paypal.com/v1/notifications/certs/A",
        "https://evil.test@api.paypal.com/v1/notifications/certs/A",
        "https://api.paypal.com@evil.test/v1/notifications/certs/A",
        "https://api.paypal.com:8443/v1/notifications/certs/A",
        "https://apiXpaypal.com/v1/notifications/certs/A",
        "https://api.paypal.com/v1/notifications/certs/",
        "https://api.paypal.com/v1/notifications/certs/../oauth2",
        "https://api.paypal.com/v1/notifications/certs/A?x=1",
        "https://api.paypal.com/v1/notifications/certs/A\n",
        "https://API.paypal.com/v1/notifications/certs/A",
        "",
    ],
)
def test_trusts_nothing_else(url: str) -> None:
    assert not is_trusted(url)
    assert Certificates(lambda url: b"never asked")(url) is None


class Source:
    """Counts what is fetched from it."""

    def __init__(self, **known: bytes) -> None:
        self.known = {BASE + name: value for name, value in known.items()}
        self.asked: list[str] = []

    def __call__(self, url: str) -> bytes | None:
        self.asked.append(url)
        return self.known.get(url)


def test_fetches_a_certificate_once() -> None:
    source = Source(A=b"pem")
    certificates = Certificates(source)
    assert [certificates(BASE + "A") for _ in range(3)] == [b"pem"] * 3
    assert source.asked == [BASE + "A"]


class Untouched:
    """A lock that must not be used."""

    def acquire(self, *_: object, **__: object) -> bool:
        raise AssertionError("waits for a fetch")

    release = acquire


def test_what_is_known_does_not_wait_for_a_fetch() -> None:
    certificates = Certificates(Source(A=b"pem"))
    certificates(BASE + "A")
    certificates._fetching = Untouched()  # type: ignore[assignment]
    assert certificates(BASE + "A") == b"pem"


def test_asks_again_a_minute_after_a_failure() -> None:
    clock, source = FakeClock(), Source()
    certificates = Certificates(source, clock=lambda: clock() / 1e9)
    assert certificates(URL) is None
    clock.advance(59.0)
    assert certificates(URL) is None
    assert len(source.asked) == 1
    source.known[URL] = b"pem"
    clock.advance(1.0)
    assert certificates(URL) == b"pem"


def test_invented_urls_neither_fill_the_tables_nor_push_out_what_is_known() -> None:
    source = Source(A=b"pem")
    certificates = Certificates(source)
    certificates(BASE + "A")
    for number in range(3000):
        assert certificates(f"{BASE}{number}") is None
    assert certificates(BASE + "A") == b"pem"
    assert source.asked.count(BASE + "A") == 1
    assert len(certificates._failed_at) <= 1000


def test_keeps_a_bounded_number() -> None:
    source = Source(**{f"c{number}": b"pem" for number in range(40)})
    certificates = Certificates(source)
    for url in source.known:
        certificates(url)
    assert len(certificates._kept) == 32
    assert certificates(f"{BASE}c39") == b"pem"
    assert len(source.asked) == 40
