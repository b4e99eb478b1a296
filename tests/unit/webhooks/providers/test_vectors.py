"""Signatures that the senders or their libraries publish, and none that we made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from gunicorn_admission.webhooks.providers import (
    Outcome,
    Reason,
    Refused,
    Secret,
    Verified,
    load_provider,
)


class Vector(NamedTuple):
    """A published request, when it is from, and at which position its secret is."""

    source: str
    provider: str
    secrets: tuple[str, ...]
    body: bytes
    headers: Mapping[str, str]
    url: str = ""
    at: float = 0.0
    position: int = 0


def octokit(secret: str, body: bytes, signature: str) -> Vector:
    headers = {"X-Hub-Signature-256": f"sha256={signature}"}
    return Vector("octokit/webhooks-methods.js", "github", (secret,), body, headers)


def normalized(payload: object) -> bytes:
    """As GitHub writes JSON: two blanks, a line end, and escapes with capital digits."""
    text = json.dumps(payload, indent=2, ensure_ascii=False) + "\n"
    return text.replace("\\u001b", "\\u001B").encode()


SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&"
    b"channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&"
    b"command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2F"
    b"T1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&"
    b"trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)

OPENAI_BODY = (
    b'{"id": "evt_685c059ae3a481909bdc86819b066fb6", "object": "event", '
    b'"created_at": 1750861210, "type": "response.completed", "data": {"id": "resp_123"}}'
)

SQUARE_BODY = (
    b'{"merchant_id":"MLEFBHHSJGVHD","type":"webhooks.test_notification",'
    b'"event_id":"ac3ac95b-f97d-458c-a6e6-18981597e05f",'
    b'"created_at":"2022-07-13T20:30:59.037339943Z",'
    b'"data":{"type":"webhooks","id":"bc368e64-01aa-407e-b46e-3231809b1129"}}'
)

SENDGRID_KEY = (
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3G"
    "Rqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=="
)

SENDGRID_BODY = (
    b'[{"email":"hello@world.com","event":"dropped","reason":"Bounced Address",'
    b'"sg_event_id":"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA",'
    b'"sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0",'
    b'"smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>",'
    b'"timestamp":1600112492}]\r\n'
)

HUBSPOT_SECRET = "yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy"
HUBSPOT_BODY = b"{'example_field':'example_value'}"
HUBSPOT_URL = "https://www.example.com/webhook_uri"

TWILIO_URL = "https://mycompany.com/myapp.php?foo=1&bar=2"
TWILIO_FORM = (
    b"CallSid=CA1234567890ABCDE&Digits=1234&From=%2B14158675309&To=%2B18005551212"
    b"&Caller=%2B14158675309"
)
TWILIO_JSON = b'{"property": "value", "boolean": true}'
TWILIO_HASH = "0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620"


def twilio(signature: str, url: str = TWILIO_URL, body: bytes = TWILIO_FORM) -> Vector:
    kind = "application/json" if body == TWILIO_JSON else "application/x-www-form-urlencoded"
    headers = {"X-Twilio-Signature": signature, "Content-Type": kind}
    return Vector("twilio-python", "twilio", ("12345",), body, headers, url)


def square(source: str, key: str, url: str, body: bytes, signature: str) -> Vector:
    return Vector(source, "square", (key,), body, {"x-square-hmacsha256-signature": signature}, url)


VECTORS = {
    "github": Vector(
        "docs.github.com, validating webhook deliveries",
        "github",
        ("It's a Secret to Everybody",),
        b"Hello, World!",
        {
            "X-Hub-Signature-256": "sha256="
            "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        },
    ),
    "github-compact": octokit(
        "mysecret",
        b'{"foo":"bar"}',
        "4864d2759938a15468b5df9ade20bf161da9b4f737ea61794142f3484236bda3",
    ),
    "github-normalized": octokit(
        "mysecret",
        normalized({"foo": "bar"}),
        "e3eccac34c43c7dc1cbb905488b1b81347fcc700a7b025697a9d07862256023f",
    ),
    "github-unicode": octokit(
        "development",
        normalized({"foo": "Foo\n\x1b[34mbar: ♥♥♥♥♥♥♥♥\nthis-is-lost\x1b[0m\x1b[2K"}),
        "9dacf9003316b09be07df56d86a2d0d6872e42a1e6c72c3bad9ff915a7c5603e",
    ),
    "github-escaped": octokit(
        "development",
        b'{\n  "foo": "\\\\u001b"\n}\n',
        "87316067e2011fae39998b18c46a14d83b3e7c3ffdd88fb2ee5afb7d11288e60",
    ),
    "slack": Vector(
        "slackapi/python-slack-sdk, tests of signature",
        "slack",
        ("8f742231b10e8888abcd99yyyzzz85a5",),
        SLACK_BODY,
        {
            "X-Slack-Request-Timestamp": "1531420618",
            "X-Slack-Signature": "v0="
            "a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        },
        at=1531420618,
    ),
    "standard-webhooks": Vector(
        "standard-webhooks and svix-webhooks, tests of the libraries",
        "standard_webhooks",
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",),
        b'{"test": 2432232314}',
        {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        },
        at=1614265330,
    ),
    "openai": Vector(
        "openai-python, tests/lib/test_webhooks.py",
        "standard_webhooks",
        ("whsec_RdvaYFYUXuIFuEbvZHwMfYFhUf7aMYjYcmM24+Aj40c=",),
        OPENAI_BODY,
        {
            "webhook-id": "wh_685c059ae39c8190af8c71ed1022a24d",
            "webhook-timestamp": "1750861210",
            "webhook-signature": "v1,gUAg4R2hWouRZqRQG4uJypNS8YK885G838+EHb4nKBY=",
        },
        at=1750861210,
    ),
    "twilio": twilio("RSOYDt4T1cUTdK1PDd93/VVr8B8="),
    "twilio-port-taken-off": twilio(
        "RSOYDt4T1cUTdK1PDd93/VVr8B8=", TWILIO_URL.replace(".com", ".com:1234")
    ),
    "twilio-https-port-put-on": twilio("kvajT1Ptam85bY51eRf/AJRuM3w="),
    "twilio-http-port-put-on": twilio(
        "0ZXoZLH/DfblKGATFgpif+LLRf4=", TWILIO_URL.replace("https", "http")
    ),
    "twilio-http-port-kept": twilio(
        "Zmvh+3yNM1Phv2jhDCwEM3q5ebU=",
        TWILIO_URL.replace("https", "http").replace(".com", ".com:1234"),
    ),
    "twilio-same-name-twice": twilio(
        "IK+Dwps556ElfBT0I3Rgjkr1wJU=",
        body=b"Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234",
    ),
    "twilio-json": twilio(
        "a9nBmqA0ju/hNViExpshrM61xv4=", f"{TWILIO_URL}&bodySHA256={TWILIO_HASH}", TWILIO_JSON
    ),
    "sendgrid": Vector(
        "sendgrid-python, test/unit/test_eventwebhook.py",
        "sendgrid",
        (SENDGRID_KEY,),
        SENDGRID_BODY,
        {
            "X-Twilio-Email-Event-Webhook-Timestamp": "1600112502",
            "X-Twilio-Email-Event-Webhook-Signature": "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOV"
            "mxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM=",
        },
        at=1600112502,
    ),
    "square": square(
        "square-python-sdk, test_webhooks_helper.py",
        "Ibxx_5AKakO-3qeNVR61Dw",
        "https://webhook.site/679a4f3a-dcfa-49ee-bac5-9d0edad886b9",
        SQUARE_BODY,
        "GF4YkrJgGBDZ9NIYbNXBnMzqb2HoL4RW/S6vkZ9/2N4=",
    ),
    "square-escaped": square(
        "square-python-sdk, test_webhooks_helper.py",
        "signature-key",
        "https://webhook.site/webhooks",
        b'{"data":{"type":"webhooks","id":">id<"}}',
        "Cxt7+aTi4rKgcA0bC4g9EHdVtLSDWdqccmL5MvihU4U=",
    ),
    "square-documentation": square(
        "developer.squareup.com",
        "asdf1234",
        "https://example.com/webhook",
        b'{"hello":"world"}',
        "2kRE5qRU2tR+tBGlDwMEw2avJ7QM4ikPYD/PJ3bd9Og=",
    ),
    "paddle": Vector(
        "paddle-python-sdk, test_Verifier.py: two old secrets, and a signature that is none",
        "paddle",
        (
            "pdl_ntf_01hbpjmytsa32fhr36nqgc3kgb_TjIG2BXbm83HPXqNfziwe506sBEdqL/4",
            "pdl_ntf_01hbpjmytsa32fhr36nqgc3kgb_vB/yIOnTOCWIvpBadM5jzBZPHc7OmdSo",
            "pdl_ntf_01hbpjmytsa32fhr36nqgc3kgb_WvRO0eL4Bj9rgYYIBZY6wZhG4EHy9jzh",
        ),
        b"hello-world",
        {
            "Paddle-Signature": "ts=1696195954;h1=dummy;"
            "h1=d96299976a6eb066f484d7fde011ac56fc32b38fc9940bc419d6e537fdc6ef02"
        },
        at=1696195954,
        position=2,
    ),
    "hubspot": Vector(
        "hubspot-api-python, test_signature.py",
        "hubspot",
        (HUBSPOT_SECRET,),
        HUBSPOT_BODY,
        {
            "X-HubSpot-Request-Timestamp": "1693657560000",
            "X-HubSpot-Signature-v3": "K36dawei4A+QBNolUOqo7s91KQDWQ5MXZ/QufNYuk/Y=",
        },
        HUBSPOT_URL,
        at=1693657560,
    ),
    "hubspot-old-clock": Vector(
        "hubspot-api-python, test_signature.py",
        "hubspot",
        (HUBSPOT_SECRET,),
        HUBSPOT_BODY,
        {
            "X-HubSpot-Request-Timestamp": "15000000",
            "X-HubSpot-Signature-v3": "HPW73RUtKmcYoEDADG0s6MmGFWUzWJKAW07r8RDgcQw=",
        },
        HUBSPOT_URL,
        at=15000,
    ),
}


def verify(vector: Vector, headers: Mapping[str, str] | None = None) -> Outcome:
    return load_provider(vector.provider).verify(
        vector.body,
        vector.headers if headers is None else headers,
        vector.url,
        [Secret(value) for value in vector.secrets],
        vector.at,
    )


@pytest.mark.parametrize("name", VECTORS)
def test_published_signature_is_good(name: str) -> None:
    vector = VECTORS[name]
    if vector.provider == "sendgrid":
        pytest.importorskip("cryptography")
    outcome = verify(vector)
    assert isinstance(outcome, Verified), outcome
    assert outcome.secret == vector.position
    body = b"".join(item.body for item in outcome.items)
    assert body == vector.body or vector.provider == "sendgrid"


@pytest.mark.parametrize("name", VECTORS)
def test_published_signature_is_of_these_bytes(name: str) -> None:
    vector = VECTORS[name]
    if vector.provider == "sendgrid":
        pytest.importorskip("cryptography")
    changed = bytearray(vector.body)
    changed[-5] ^= 1
    assert verify(vector._replace(body=bytes(changed))) == Refused(reason=Reason.WRONG_SIGNATURE)


def test_ids_and_types_of_published_events() -> None:
    openai = verify(VECTORS["openai"])
    assert isinstance(openai, Verified)
    assert openai.event_id == "wh_685c059ae39c8190af8c71ed1022a24d"
    assert openai.event_type == "response.completed"
    square_event = verify(VECTORS["square"])
    assert isinstance(square_event, Verified)
    assert square_event.event_id == "ac3ac95b-f97d-458c-a6e6-18981597e05f"
    assert square_event.event_type == "webhooks.test_notification"
    assert square_event.timestamp == 1657744259.037339


def test_published_events_of_a_batch() -> None:
    pytest.importorskip("cryptography")
    outcome = verify(VECTORS["sendgrid"])
    assert isinstance(outcome, Verified)
    (item,) = outcome.items
    assert item.event_id == "ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA"
    assert item.event_type == "dropped"
    assert item.timestamp == 1600112492
    assert b"[" + item.body + b"]\r\n" == SENDGRID_BODY


@pytest.mark.parametrize(
    ("version", "signature", "hashed"),
    [
        (
            "v1",
            "69fc6631a867edd4f9e9e627fc5c1148e3fbdd8b21837b6d2b8901c1fa57f750",
            HUBSPOT_SECRET.encode() + HUBSPOT_BODY,
        ),
        (
            "v2",
            "4fe4e3a7d3cf09db53be39d0a58130e2aaba074ec123a9e355b876a689a1c383",
            HUBSPOT_SECRET.encode() + b"POST" + HUBSPOT_URL.encode() + HUBSPOT_BODY,
        ),
    ],
)
def test_older_signatures_of_hubspot_are_not_taken(
    version: str, signature: str, hashed: bytes
) -> None:
    # They are what is published, and a plain hash that begins with the secret: whoever has one
    # can put bytes behind the body and has its hash too.
    assert hashlib.sha256(hashed).hexdigest() == signature
    headers = {"X-HubSpot-Signature": signature, "X-HubSpot-Signature-Version": version}
    assert verify(VECTORS["hubspot"], headers) == Refused(
        reason=Reason.MISSING_HEADER, header="X-HubSpot-Signature-v3"
    )
    as_newest = {**VECTORS["hubspot"].headers, "X-HubSpot-Signature-v3": signature}
    assert verify(VECTORS["hubspot"], as_newest) == Refused(reason=Reason.WRONG_SIGNATURE)


@pytest.mark.parametrize("value", ["whsec_", "whsec_!", "whsec_Zg==Zg==", "whpk_"])
def test_secrets_that_the_libraries_must_refuse(value: str) -> None:
    with pytest.raises(ValueError, match=r"^secret = '\(hidden\)': expected whsec_"):
        load_provider("standard_webhooks").check_secret(Secret(value))


def test_secret_without_padding() -> None:
    vector = VECTORS["openai"]
    for value in (vector.secrets[0].rstrip("="), vector.secrets[0].removeprefix("whsec_")):
        assert isinstance(verify(vector._replace(secrets=(value,))), Verified)
