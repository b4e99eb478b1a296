"""The senders' own libraries as a second opinion: what they sign and accept, and what we do."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gunicorn_admission.webhooks.providers import Provider, Secret, Verified, load_provider

NOW = 1_790_000_000
SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode()
repeatable = settings(deadline=None, derandomize=True, max_examples=50)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def accepts(provider: Provider, body: bytes, headers: dict[str, str], url: str = "") -> bool:
    outcome = provider.verify(body, headers, url, [Secret(SECRET)], NOW)
    return isinstance(outcome, Verified)


@pytest.fixture(scope="module")
def stripe_header() -> Callable[[str, int], str]:
    webhook = pytest.importorskip("stripe").WebhookSignature

    def sign(body: str, time: int) -> str:
        signature = webhook._compute_signature(f"{time}.{body}", SECRET)
        header = f"t={time},v1={signature},v0=00"
        assert webhook.verify_header(body, header, SECRET)
        return header

    return sign


@repeatable
@given(body=texts, age=st.integers(-300, 300))
def test_stripe(stripe_header: Callable[[str, int], str], body: str, age: int) -> None:
    stripe = load_provider("stripe")
    header = {"Stripe-Signature": stripe_header(body, NOW - age)}
    assert accepts(stripe, body.encode(), header)
    assert not accepts(stripe, body.encode() + b" ", header)


@repeatable
@given(body=texts)
def test_slack(body: str) -> None:
    signature = pytest.importorskip("slack_sdk.signature")

    class Clock:
        def now(self) -> float:
            return float(NOW)

    verifier = signature.SignatureVerifier(SECRET, clock=Clock())
    signed = verifier.generate_signature(timestamp=str(NOW), body=body)
    headers = {"X-Slack-Request-Timestamp": str(NOW), "X-Slack-Signature": signed}
    slack = load_provider("slack")
    assert verifier.is_valid(body, str(NOW), signed)
    assert accepts(slack, body.encode(), headers)
    assert not accepts(slack, body.encode() + b" ", headers)


@repeatable
@given(body=texts)
def test_standard_webhooks(body: str) -> None:
    library = pytest.importorskip("standardwebhooks.webhooks")
    webhook = library.Webhook(SECRET)
    signed = webhook.sign("msg_1", datetime.fromtimestamp(NOW, UTC), body)
    provider = load_provider("standard_webhooks")
    for family in ("webhook", "svix"):
        headers = {
            f"{family}-id": "msg_1",
            f"{family}-timestamp": str(NOW),
            f"{family}-signature": f"v1,AAAA {signed} v2,future",
        }
        assert accepts(provider, body.encode(), headers)
        assert not accepts(provider, body.encode() + b" ", headers)


fields = st.lists(st.tuples(texts, texts), max_size=5)


@pytest.fixture(scope="module")
def twilio_validator() -> Any:
    return pytest.importorskip("twilio.request_validator").RequestValidator(SECRET)


@repeatable
@given(
    pairs=fields,
    port=st.sampled_from(["", ":443", ":80", ":8443"]),
    algorithm=st.sampled_from(["HMAC_SHA1", "HMAC_SHA256"]),
)
def test_twilio(
    twilio_validator: Any, pairs: list[tuple[str, str]], port: str, algorithm: str
) -> None:
    from urllib.parse import urlencode

    from werkzeug.datastructures import MultiDict

    url = f"https://example.com{port}/twilio?a=1"
    pairs = [(name, value) for name, value in pairs if name or value]

    class Fields(MultiDict[str, str]):
        """What a framework makes of a form, with the method that the library looks for."""

        def getall(self, name: str) -> list[str]:
            return self.getlist(name)

    signed = twilio_validator.compute_signature(url, Fields(pairs), algorithm)
    body = urlencode(pairs).encode()
    headers = {
        "X-Twilio-Signature": signed,
        "X-Twilio-Webhooks-Signature-Settings": f"key=k,algorithm={algorithm}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    twilio = load_provider("twilio")
    assert twilio_validator.validate(url, Fields(pairs), signed, algorithm)
    assert accepts(twilio, body, headers, url)
    assert not accepts(twilio, body + b"&x=1", headers, url)
