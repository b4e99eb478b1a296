"""Requests signed by the senders' own libraries are stored, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import parse_qsl

import pytest

from gunicorn_admission.webhooks.intake import Intake, Source
from gunicorn_admission.webhooks.store import Store
from tests.intake_calls import post, rows
from tests.senders import AT, URL, Sent

BODY = '{"id": "evt_1", "event_id": "Ev1", "type": "event_callback", "text": "10 €, 🎉"}'.encode()
FORM = b"MessageSid=SM1&MessageStatus=sent"


def stripe_sent() -> tuple[Source, Sent]:
    stripe = pytest.importorskip("stripe")
    secret, time = "whsec_of_stripe", f"{AT:.0f}"
    signature = stripe.WebhookSignature._compute_signature(f"{time}.{BODY.decode()}", secret)
    headers = {"Stripe-Signature": f"t={time},v1={signature}"}
    return Source("pay", provider="stripe", secrets=[secret]), Sent(BODY, headers)


def slack_sent() -> tuple[Source, Sent]:
    signing = pytest.importorskip("slack_sdk.signature")
    secret, time = "8f742231b10e8888abcd99yyyzzz85a5", f"{AT:.0f}"
    signature = signing.SignatureVerifier(secret).generate_signature(timestamp=time, body=BODY)
    headers = {"X-Slack-Request-Timestamp": time, "X-Slack-Signature": signature}
    return Source("chat", provider="slack", secrets=[secret]), Sent(BODY, headers)


def standard_sent() -> tuple[Source, Sent]:
    webhooks = pytest.importorskip("standardwebhooks.webhooks")
    secret, when = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", datetime.fromtimestamp(AT, UTC)
    signature = webhooks.Webhook(secret).sign("msg_1", when, BODY.decode())
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": f"{AT:.0f}",
        "webhook-signature": signature,
    }
    return Source("std", provider="standard_webhooks", secrets=[secret]), Sent(BODY, headers)


def twilio_sent() -> tuple[Source, Sent]:
    validator = pytest.importorskip("twilio.request_validator")
    signature = validator.RequestValidator("12345").compute_signature(
        URL, dict(parse_qsl(FORM.decode()))
    )
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "I-Twilio-Idempotency-Token": "t-1",
        "X-Twilio-Signature": signature,
    }
    source = Source("sms", provider="twilio", secrets=["12345"], url=URL)
    return source, Sent(FORM, headers)


@pytest.mark.parametrize(
    ("make_sent", "event_id"),
    [(stripe_sent, "evt_1"), (slack_sent, "Ev1"), (standard_sent, "msg_1"), (twilio_sent, "t-1")],
    ids=["stripe", "slack_sdk", "standardwebhooks", "twilio"],
)
def test_stored(
    make: Callable[..., Intake],
    store: Store,
    make_sent: Callable[[], tuple[Source, Sent]],
    event_id: str,
) -> None:
    source, sent = make_sent()
    app = make(source)
    assert post(app, source.name, sent).json() == {"result": "stored"}
    assert post(app, source.name, sent._replace(body=sent.body + b"x")).status == 401
    assert [(row.event_id, row.body) for row in rows(store)] == [(event_id, sent.body)]
