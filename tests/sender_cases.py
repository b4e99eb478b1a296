"""Every provider with a sender, its keys and a usual body: what the contract is tested with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gunicorn_admission.webhooks.providers import Provider, load_provider
from gunicorn_admission.webhooks.providers.paypal import PayPal
from tests import senders
from tests.senders import CERTIFICATE_URL, WHSEC, Key, Sent, plain, to_json


class Sender(NamedTuple):
    """
    One sender.

    Attributes:
        name: Shown in the name of a test.
        provider: What verifies it.
        keys: Two pairs of keys: current and next.
        sign: Signs a body with the private part of a key, at a time.
        body: A usual body.
        event_ids: Ids that the body, or the headers, give.
        signed: Headers that the signature covers or consists of; none may be missing, come
            twice, be too long or hold anything but ASCII.
        lacks: Property to the reason why the sender does not have it.
    """

    name: str
    provider: Provider
    keys: tuple[Key, Key]
    sign: Callable[[bytes, Any, float], Sent]
    body: bytes
    event_ids: tuple[str, ...]
    signed: tuple[str, ...]
    lacks: Mapping[str, str] = {}


# What a sender may lack.
COVERS_BODY = "the signature covers the body"
ANY_BODY = "any bytes can be signed"
IS_DATED = "the signature has a time"
SECRET_IS_SECRET = "whoever lacks the secret cannot do the same work"


PUBLIC = {SECRET_IS_SECRET: "keys are public, so there is no work to hide"}
UNDATED = {IS_DATED: "nothing that is signed is a time"}
EVENT = to_json({"id": "evt_1", "type": "invoice.paid", "text": "10 €, 🎉"})
PAYPAL = PayPal(certificates=lambda url: senders.rsa_pair()[1] if url == CERTIFICATE_URL else None)


def _senders() -> list[Sender]:
    of = load_provider
    return [
        Sender(
            "github",
            of("github"),
            plain("It's a Secret to Everybody", "another secret"),
            senders.github,
            EVENT,
            ("72d3162e-cc78-11e3-81ab-4c9367dc0958",),
            ("X-Hub-Signature-256",),
            UNDATED,
        ),
        Sender(
            "bitbucket",
            of("bitbucket"),
            plain("secret-1", "secret-2"),
            senders.bitbucket,
            EVENT,
            ("6f3b2c1d-0a4e-4f5b-9c8d-7e6f5a4b3c2d",),
            ("X-Hub-Signature",),
            UNDATED,
        ),
        Sender(
            "stripe",
            of("stripe"),
            plain("whsec_test_secret", "whsec_new_secret"),
            senders.stripe,
            EVENT,
            ("evt_1",),
            ("Stripe-Signature",),
        ),
        Sender(
            "shopify",
            of("shopify"),
            plain("shpss_old", "shpss_new"),
            senders.shopify,
            EVENT,
            ("shop.myshopify.com/orders/create/98880550-7158-44d4-b7cd-2c97c8a091b5",),
            ("X-Shopify-Hmac-Sha256",),
            UNDATED,
        ),
        Sender(
            "slack",
            of("slack"),
            plain("8f742231b10e8888abcd99yyyzzz85a5", "0123456789abcdef0123456789abcdef"),
            senders.slack,
            to_json({"type": "event_callback", "event_id": "Ev1", "event": {"type": "message"}}),
            ("Ev1",),
            ("X-Slack-Signature", "X-Slack-Request-Timestamp"),
        ),
        Sender(
            "standard_webhooks",
            of("standard_webhooks"),
            WHSEC,
            senders.standard("webhook"),
            EVENT,
            ("msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",),
            ("webhook-id", "webhook-timestamp", "webhook-signature"),
        ),
        Sender(
            "standard_webhooks-svix",
            of("standard_webhooks"),
            WHSEC,
            senders.standard("svix"),
            EVENT,
            ("msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",),
            ("svix-id", "svix-timestamp", "svix-signature"),
        ),
        Sender(
            "standard_webhooks-public",
            of("standard_webhooks"),
            senders.ed25519_keys(),
            senders.standard_public,
            EVENT,
            ("msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",),
            ("webhook-id", "webhook-timestamp", "webhook-signature"),
            PUBLIC,
        ),
        Sender(
            "gitlab",
            of("gitlab"),
            WHSEC,
            senders.gitlab,
            EVENT,
            ("msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",),
            ("webhook-id", "webhook-timestamp", "webhook-signature"),
        ),
        Sender(
            "gitlab-token",
            of("gitlab"),
            plain("glpat-secret-token", "glpat-new-token"),
            senders.gitlab_token,
            EVENT,
            ("f5e5f430-f57b-4e6e-9fac-d9128cd7232f",),
            ("X-Gitlab-Token",),
            {**UNDATED, COVERS_BODY: "the token comes in the clear and vouches for nothing"},
        ),
        Sender(
            "linear",
            of("linear"),
            plain("lin_wh_1", "lin_wh_2"),
            senders.linear,
            to_json({"type": "Issue", "action": "create", "webhookTimestamp": 0}),
            ("234d1a4e-b617-4388-90fe-adc3633d6b72",),
            ("Linear-Signature",),
        ),
        Sender(
            "twilio",
            of("twilio"),
            plain("12345", "54321"),
            senders.twilio,
            b"MessageSid=SM1&Digits=&MessageStatus=sent",
            ("b1c8e54c-09a1-4dd5-bd3f-9fbb5c0a61c1",),
            ("X-Twilio-Signature",),
            {**UNDATED, ANY_BODY: "fields of a form are signed"},
        ),
        Sender(
            "twilio-json",
            of("twilio"),
            plain("shared-key-1", "shared-key-2"),
            senders.twilio_json,
            to_json([{"id": "EZ1", "type": "com.twilio.messaging"}, {"id": "EZ2"}]),
            ("EZ1", "EZ2"),
            ("X-Twilio-Signature",),
            UNDATED,
        ),
        Sender(
            "sendgrid",
            of("sendgrid"),
            senders.ecdsa_keys(),
            senders.sendgrid,
            to_json([{"sg_event_id": "a", "event": "open"}, {"sg_event_id": "b"}]) + b"\r\n",
            ("a", "b"),
            (
                "X-Twilio-Email-Event-Webhook-Timestamp",
                "X-Twilio-Email-Event-Webhook-Signature",
            ),
            PUBLIC,
        ),
        Sender(
            "square",
            of("square"),
            plain("signature-key", "asdf1234"),
            senders.square,
            to_json({"event_id": "ac3ac95b", "type": "payment.created"}),
            ("ac3ac95b",),
            ("x-square-hmacsha256-signature",),
            UNDATED,
        ),
        Sender(
            "paddle",
            of("paddle"),
            plain("pdl_ntf_1", "pdl_ntf_2"),
            senders.paddle,
            to_json({"event_id": "evt_01", "event_type": "customer.created"}),
            ("evt_01",),
            ("Paddle-Signature",),
        ),
        Sender(
            "hubspot",
            of("hubspot"),
            plain("yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy", "client-secret-2"),
            senders.hubspot,
            to_json(
                [{"portalId": 62515, "subscriptionId": 12, "eventId": 1, "occurredAt": 1564113}]
            ),
            ("62515:12:1:1564113",),
            ("X-HubSpot-Signature-v3", "X-HubSpot-Request-Timestamp"),
        ),
        Sender(
            "mailgun",
            of("mailgun"),
            plain("key-1", "key-2"),
            senders.mailgun,
            to_json({"event-data": {"id": "G9Bn5sl1TC6nu79C8C0bwg", "event": "opened"}}),
            ("G9Bn5sl1TC6nu79C8C0bwg",),
            (),
            {
                COVERS_BODY: "only a token in it is signed",
                ANY_BODY: "the signature is in the body",
            },
        ),
        Sender(
            "zendesk",
            of("zendesk"),
            plain("dGhpc19zZWNyZXQ=", "b3RoZXI="),
            senders.zendesk,
            to_json({"id": "01GJ", "type": "zen:event-type:ticket.created"}),
            ("01GJ",),
            ("X-Zendesk-Webhook-Signature", "X-Zendesk-Webhook-Signature-Timestamp"),
        ),
        Sender(
            "paypal",
            PAYPAL,
            plain("1JE4291016473214C", "8PT597110X687430L"),
            senders.paypal,
            to_json({"id": "WH-1", "event_type": "PAYMENT.CAPTURE.COMPLETED"}),
            ("WH-1",),
            (
                "PAYPAL-TRANSMISSION-ID",
                "PAYPAL-TRANSMISSION-TIME",
                "PAYPAL-TRANSMISSION-SIG",
                "PAYPAL-AUTH-ALGO",
                "PAYPAL-CERT-URL",
            ),
            PUBLIC,
        ),
        Sender(
            "hookdeck",
            of("hookdeck"),
            plain("project-secret", "rolled-secret"),
            senders.hookdeck,
            EVENT,
            ("evt_eNycCNgd99CGUBflic",),
            ("X-Hookdeck-Signature",),
            UNDATED,
        ),
        Sender(
            "kit",
            of("kit"),
            plain("kit-1", "kit-2"),
            senders.kit,
            to_json(
                {"delivery_id": 123456, "events": [{"id": "9c2e", "type": "a"}, {"id": "9c2f"}]}
            ),
            ("9c2e", "9c2f"),
            ("X-Kit-Signature",),
        ),
    ]


SENDERS = _senders()
