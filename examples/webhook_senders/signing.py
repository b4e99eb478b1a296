"""
How each sender signs a body, by its documentation.

Written apart from how the package verifies: nothing here is imported from it, so that tests can
hold one against the other. Ids are fixed unless one is given, and a signature is made ``at`` a
time in seconds since the epoch.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

URL = "https://hooks.example.com/in?tenant=7"
AT = 1_790_000_000.0


class Sent(NamedTuple):
    """A request on the wire."""

    body: bytes
    headers: dict[str, str]
    url: str = URL


class Key(NamedTuple):
    """A secret as the receiver has it, and what the sender signs with."""

    secret: str
    private: Any


def mac(key: bytes, message: bytes, algorithm: str = "sha256") -> bytes:
    return hmac.new(key, message, algorithm).digest()


def hexed(key: str, message: bytes) -> str:
    return mac(key.encode(), message).hex()


def b64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def to_json(value: object) -> bytes:
    return json.dumps(value).encode()


def plain(*texts: str) -> tuple[Key, Key]:
    first, second = (Key(text, text) for text in texts)
    return first, second


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def github(body: bytes, key: str, at: float) -> Sent:
    return Sent(
        body,
        {
            "X-GitHub-Event": "push",
            "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
            "X-Hub-Signature-256": "sha256=" + hexed(key, body),
        },
    )


def bitbucket(body: bytes, key: str, at: float) -> Sent:
    return Sent(
        body,
        {
            "X-Event-Key": "repo:push",
            "X-Request-UUID": "6f3b2c1d-0a4e-4f5b-9c8d-7e6f5a4b3c2d",
            "X-Attempt-Number": "1",
            "X-Hub-Signature": "sha256=" + hexed(key, body),
        },
    )


def stripe(body: bytes, key: str, at: float) -> Sent:
    time = f"{at:.0f}"
    signature = hexed(key, time.encode() + b"." + body)
    return Sent(body, {"Stripe-Signature": f"t={time},v1={signature}"})


def kit(body: bytes, key: str, at: float) -> Sent:
    time = f"{at:.0f}"
    signature = hexed(key, time.encode() + b"." + body)
    return Sent(body, {"X-Kit-Delivery": "123456", "X-Kit-Signature": f"t={time},v1={signature}"})


def paddle(body: bytes, key: str, at: float) -> Sent:
    time = f"{at:.0f}"
    signature = hexed(key, time.encode() + b":" + body)
    return Sent(body, {"Paddle-Signature": f"ts={time};h1={signature}"})


def shopify(body: bytes, key: str, at: float) -> Sent:
    return Sent(
        body,
        {
            "X-Shopify-Topic": "orders/create",
            "X-Shopify-Shop-Domain": "shop.myshopify.com",
            "X-Shopify-Event-Id": "98880550-7158-44d4-b7cd-2c97c8a091b5",
            "X-Shopify-Webhook-Id": "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043",
            "X-Shopify-Triggered-At": "2026-09-21T15:33:20.123456789Z",
            "X-Shopify-Hmac-Sha256": b64(mac(key.encode(), body)),
        },
    )


def slack(body: bytes, key: str, at: float) -> Sent:
    time = f"{at:.0f}"
    signature = hexed(key, b"v0:" + time.encode() + b":" + body)
    return Sent(body, {"X-Slack-Request-Timestamp": time, "X-Slack-Signature": f"v0={signature}"})


def standard(
    family: str, event_id: str = "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W"
) -> Callable[[bytes, bytes, float], Sent]:
    def sign(body: bytes, key: bytes, at: float) -> Sent:
        time = f"{at:.0f}"
        signature = b64(mac(key, f"{event_id}.{time}.".encode() + body))
        return Sent(
            body,
            {
                f"{family}-id": event_id,
                f"{family}-timestamp": time,
                f"{family}-signature": f"v1,{signature}",
            },
        )

    return sign


def standard_public(body: bytes, key: Any, at: float) -> Sent:
    sent = standard("webhook")(body, b"", at)
    message = f"{sent.headers['webhook-id']}.{sent.headers['webhook-timestamp']}.".encode() + body
    signature = "v1a," + b64(key.sign(message))
    return sent._replace(headers={**sent.headers, "webhook-signature": signature})


def gitlab(
    body: bytes, key: bytes, at: float, event_id: str = "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W"
) -> Sent:
    sent = standard("webhook", event_id)(body, key, at)
    own = {"X-Gitlab-Event": "Push Hook", "Idempotency-Key": sent.headers["webhook-id"]}
    return sent._replace(headers={**own, **sent.headers})


def gitlab_token(body: bytes, key: str, at: float) -> Sent:
    return Sent(
        body,
        {
            "X-Gitlab-Event": "Push Hook",
            "Idempotency-Key": "f5e5f430-f57b-4e6e-9fac-d9128cd7232f",
            "X-Gitlab-Token": key,
        },
    )


def linear(body: bytes, key: str, at: float) -> Sent:
    # The time is in the body, where there is one that can hold it.
    body = body.replace(b'"webhookTimestamp": 0', f'"webhookTimestamp": {at * 1000:.0f}'.encode())
    return Sent(
        body,
        {
            "Linear-Delivery": "234d1a4e-b617-4388-90fe-adc3633d6b72",
            "Linear-Event": "Issue",
            "Linear-Signature": hexed(key, body),
        },
    )


def twilio(body: bytes, key: str, at: float, url: str = URL) -> Sent:
    fields = dict(pair.split(b"=") for pair in body.split(b"&"))
    message = url.encode() + b"".join(name + fields[name] for name in sorted(fields))
    return Sent(
        body,
        {
            "Content-Type": "application/x-www-form-urlencoded; charset=UTF-8",
            "I-Twilio-Idempotency-Token": "b1c8e54c-09a1-4dd5-bd3f-9fbb5c0a61c1",
            "X-Twilio-Signature": b64(mac(key.encode(), message, "sha1")),
        },
        url,
    )


def twilio_json(body: bytes, key: str, at: float) -> Sent:
    url = f"{URL}&bodySHA256={hashlib.sha256(body).hexdigest()}"
    return Sent(
        body,
        {
            "Content-Type": "application/json",
            "X-Twilio-Webhooks-Signature-Settings": "key=webhooks_sharedkey_1,"
            "algorithm=HMAC_SHA256",
            "X-Twilio-Signature": b64(mac(key.encode(), url.encode())),
        },
        url,
    )


def sendgrid(body: bytes, key: Any, at: float) -> Sent:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    time = f"{at:.0f}"
    signature = key.sign(time.encode() + body, ec.ECDSA(hashes.SHA256()))
    return Sent(
        body,
        {
            "X-Twilio-Email-Event-Webhook-Timestamp": time,
            "X-Twilio-Email-Event-Webhook-Signature": b64(signature),
        },
    )


def square(body: bytes, key: str, at: float, url: str = URL) -> Sent:
    signature = b64(mac(key.encode(), url.encode() + body))
    return Sent(body, {"x-square-hmacsha256-signature": signature}, url)


def hubspot(body: bytes, key: str, at: float, url: str = URL) -> Sent:
    time = f"{at * 1000:.0f}"
    signature = b64(mac(key.encode(), b"POST" + url.encode() + body + time.encode()))
    headers = {"X-HubSpot-Request-Timestamp": time, "X-HubSpot-Signature-v3": signature}
    return Sent(body, headers, url)


def mailgun(
    body: bytes,
    key: str,
    at: float,
    token: str = "e0b5477167110d68991efc6b9f89f0a11066af27834600e123",
) -> Sent:
    payload = json.loads(body)
    time = f"{at:.0f}"
    payload["signature"] = {
        "timestamp": time,
        "token": token,
        "signature": hexed(key, f"{time}{token}".encode()),
    }
    return Sent(to_json(payload), {"Content-Type": "application/json"})


def zendesk(body: bytes, key: str, at: float) -> Sent:
    time = iso(at)
    return Sent(
        body,
        {
            "X-Zendesk-Webhook-Signature-Timestamp": time,
            "X-Zendesk-Webhook-Signature": b64(mac(key.encode(), time.encode() + body)),
            "X-Zendesk-Webhook-Invocation-Id": "01J9Z3",
        },
    )


def hookdeck(body: bytes, key: str, at: float) -> Sent:
    return Sent(
        body,
        {
            "X-Hookdeck-EventID": "evt_eNycCNgd99CGUBflic",
            "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
            "X-Hookdeck-Signature": b64(mac(key.encode(), body)),
        },
    )


CERTIFICATE_URL = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-1d93a270"


def paypal(
    body: bytes, key: str, at: float, transmission: str = "69cd13f0-d67a-11e5-baa3-778b53f4ae55"
) -> Sent:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    private, _ = rsa_pair()
    time = iso(at)
    message = f"{transmission}|{time}|{key}|{zlib.crc32(body)}".encode()
    signature = private.sign(message, padding.PKCS1v15(), hashes.SHA256())
    return Sent(
        body,
        {
            "PAYPAL-TRANSMISSION-ID": transmission,
            "PAYPAL-TRANSMISSION-TIME": time,
            "PAYPAL-TRANSMISSION-SIG": b64(signature),
            "PAYPAL-AUTH-ALGO": "SHA256withRSA",
            "PAYPAL-CERT-URL": CERTIFICATE_URL,
        },
    )


@cache
def rsa_pair() -> tuple[Any, bytes]:
    """A private key and a certificate that is valid around ``AT``."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "messages.test")])
    middle = datetime.fromtimestamp(AT, UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(middle - timedelta(days=30))
        .not_valid_after(middle + timedelta(days=30))
        .sign(key, hashes.SHA256())
    )
    return key, certificate.public_bytes(serialization.Encoding.PEM)


def ecdsa_keys() -> tuple[Key, Key]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def pair(number: int) -> Key:
        private = ec.derive_private_key(number, ec.SECP256R1())
        public = private.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return Key(b64(public), private)

    return pair(0x5EC12E7), pair(0x5EC12E8)


def ed25519_keys() -> tuple[Key, Key]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    def pair(seed: bytes) -> Key:
        private = Ed25519PrivateKey.from_private_bytes(seed)
        public = private.public_key().public_bytes(
            serialization.Encoding.Raw, serialization.PublicFormat.Raw
        )
        return Key("whpk_" + b64(public), private)

    return pair(b"1" * 32), pair(b"2" * 32)


def whsec(*keys: bytes) -> tuple[Key, Key]:
    first, second = (Key("whsec_" + b64(key), key) for key in keys)
    return first, second


WHSEC = whsec(b"a" * 24, b"b" * 24)
