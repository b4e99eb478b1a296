"""An event of each provider, with an id of its own, ready to be signed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import signing
from .signing import Sent, to_json

#: Signs the same event anew: key and time in, request out.
Sign = Callable[[Any, float], Sent]


def event(provider: str, number: int, url: str, text: str = "10 €, 🎉") -> tuple[str, Sign]:
    """
    Return the id that an event will have, and how it is signed.

    Args:
        provider: Its name.
        number: Of the event; the same number is the same event.
        url: Public URL, for providers that sign it.
        text: Makes bodies longer, or not ASCII.
    """
    made: tuple[str, Sign] = MAKERS[provider](f"{provider}-{number}", number, url, text)
    return made


def _in_header(
    sign: Callable[[bytes, Any, float], Sent], header: str
) -> Callable[[str, int, str, str], tuple[str, Sign]]:
    """The id stands in a header that is not signed."""

    def make(event_id: str, number: int, url: str, text: str) -> tuple[str, Sign]:
        body = to_json({"type": "thing.happened", "number": number, "text": text})

        def signed(key: Any, at: float) -> Sent:
            sent = sign(body, key, at)
            return sent._replace(headers={**sent.headers, header: event_id}, url=url)

        return event_id, signed

    return make


def _in_body(
    sign: Callable[[bytes, Any, float], Sent], payload: Callable[[str, str], object]
) -> Callable[[str, int, str, str], tuple[str, Sign]]:
    """The id stands in the body."""

    def make(event_id: str, number: int, url: str, text: str) -> tuple[str, Sign]:
        body = to_json(payload(event_id, text))
        return event_id, lambda key, at: sign(body, key, at)._replace(url=url)

    return make


def _shopify(event_id: str, number: int, url: str, text: str) -> tuple[str, Sign]:
    _, sign = _in_header(signing.shopify, "X-Shopify-Event-Id")(event_id, number, url, text)
    return f"shop.myshopify.com/orders/create/{event_id}", sign


def _standard(event_id: str, number: int, url: str, text: str) -> tuple[str, Sign]:
    body = to_json({"type": "thing.happened", "text": text})
    sign = signing.standard("webhook", event_id)
    return event_id, lambda key, at: sign(body, key, at)._replace(url=url)


def _gitlab(event_id: str, number: int, url: str, text: str) -> tuple[str, Sign]:
    body = to_json({"object_kind": "push", "text": text})
    return event_id, lambda key, at: signing.gitlab(body, key, at, event_id)._replace(url=url)


def _linear(event_id: str, number: int, url: str, text: str) -> tuple[str, Sign]:
    body = to_json({"type": "Issue", "action": "create", "text": text, "webhookTimestamp": 0})

    def sign(key: Any, at: float) -> Sent:
        sent = signing.linear(body, key, at)
        return sent._replace(headers={**sent.headers, "Linear-Delivery": event_id}, url=url)

    return event_id, sign


def _twilio(event_id: str, number: int, url: str, text: str) -> tuple[str, Sign]:
    body = f"MessageSid=SM{number}&MessageStatus=sent".encode()

    def sign(key: Any, at: float) -> Sent:
        sent = signing.twilio(body, key, at, url)
        return sent._replace(headers={**sent.headers, "I-Twilio-Idempotency-Token": event_id})

    return event_id, sign


def _square(event_id: str, number: int, url: str, text: str) -> tuple[str, Sign]:
    body = to_json({"event_id": event_id, "type": "payment.created", "text": text})
    return event_id, lambda key, at: signing.square(body, key, at, url)


def _hubspot(event_id: str, number: int, url: str, text: str) -> tuple[str, Sign]:
    body = to_json(
        [{"portalId": 1, "subscriptionId": 2, "eventId": number, "occurredAt": 3, "text": text}]
    )
    return f"1:2:{number}:3", lambda key, at: signing.hubspot(body, key, at, url)


def _mailgun(event_id: str, number: int, url: str, text: str) -> tuple[str, Sign]:
    body = to_json({"event-data": {"id": event_id, "event": "opened", "text": text}})
    token = f"{number:050d}"
    return event_id, lambda key, at: signing.mailgun(body, key, at, token)._replace(url=url)


def _paypal(event_id: str, number: int, url: str, text: str) -> tuple[str, Sign]:
    body = to_json({"id": event_id, "event_type": "PAYMENT.CAPTURE.COMPLETED", "text": text})
    return event_id, lambda key, at: signing.paypal(body, key, at, event_id)._replace(url=url)


MAKERS: dict[str, Callable[[str, int, str, str], tuple[str, Sign]]] = {
    "bitbucket": _in_header(signing.bitbucket, "X-Request-UUID"),
    "github": _in_header(signing.github, "X-GitHub-Delivery"),
    "gitlab": _gitlab,
    "hookdeck": _in_header(signing.hookdeck, "X-Hookdeck-EventID"),
    "hubspot": _hubspot,
    "kit": _in_body(
        signing.kit, lambda i, t: {"delivery_id": i, "events": [{"id": i, "type": "a", "text": t}]}
    ),
    "linear": _linear,
    "mailgun": _mailgun,
    "paddle": _in_body(
        signing.paddle, lambda i, t: {"event_id": i, "event_type": "customer.created", "text": t}
    ),
    "paypal": _paypal,
    "sendgrid": _in_body(
        signing.sendgrid, lambda i, t: [{"sg_event_id": i, "event": "open", "text": t}]
    ),
    "shopify": _shopify,
    "slack": _in_body(
        signing.slack,
        lambda i, t: {"type": "event_callback", "event_id": i, "event": {"type": "m", "text": t}},
    ),
    "square": _square,
    "standard_webhooks": _standard,
    "stripe": _in_body(signing.stripe, lambda i, t: {"id": i, "type": "invoice.paid", "text": t}),
    "twilio": _twilio,
    "zendesk": _in_body(
        signing.zendesk, lambda i, t: {"id": i, "type": "zen:event-type:x", "text": t}
    ),
}
