"""The rules that only one sender has."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import pytest

from gunicorn_admission.webhooks.providers import (
    IdSource,
    Reason,
    Refused,
    Tolerance,
    load_provider,
)
from gunicorn_admission.webhooks.providers.hookdeck import Hookdeck
from gunicorn_admission.webhooks.providers.linear import Linear
from tests import senders
from tests.senders import AT, Sent, hexed, iso, mac, to_json
from tests.verifying import KEY, changed, good, verify


class TestLists:
    """Stripe, Kit and Paddle have several signatures in one header."""

    @pytest.mark.parametrize("name", ["stripe", "kit"])
    def test_any_signature_of_a_rotation_will_do(self, name: str) -> None:
        body, time = b"{}", f"{AT:.0f}"
        one, two = (hexed(key, f"{time}.".encode() + body) for key in ("old", "new"))
        header = {"stripe": "Stripe-Signature", "kit": "X-Kit-Signature"}[name]
        sent = Sent(body, {header: f"t={time}, v1={one}, v1={two}"})
        assert good(verify(name, sent, "old")).secret == 0
        assert good(verify(name, sent, "other", "new")).secret == 1

    @pytest.mark.parametrize(
        "header",
        ["v1=00", "t=1", "t=,v1=00", "t=1,v0=00", "t=1,t=1,v1=00", "t=1;v1=00", "t=x,v1=00", "t"],
    )
    def test_what_has_no_time_or_no_signature(self, header: str) -> None:
        sent = Sent(b"{}", {"Stripe-Signature": header})
        assert verify("stripe", sent) == Refused(
            reason=Reason.MALFORMED_HEADER, header="Stripe-Signature"
        )

    def test_an_old_version_is_not_taken(self) -> None:
        sent = senders.stripe(b"{}", KEY, AT)
        header = sent.headers["Stripe-Signature"].replace("v1=", "v0=")
        outcome = verify("stripe", changed(sent, {"Stripe-Signature": header + ",v1=00"}))
        assert outcome == Refused(reason=Reason.WRONG_SIGNATURE)

    def test_a_joined_header_is_not_one(self) -> None:
        sent = senders.paddle(b"{}", KEY, AT)
        text = sent.headers["Paddle-Signature"]
        outcome = verify("paddle", changed(sent, {"Paddle-Signature": f"{text}, {text}"}))
        assert outcome == Refused(reason=Reason.DUPLICATE_HEADER, header="Paddle-Signature")


@pytest.mark.parametrize("name", ["github", "bitbucket"])
def test_sha_1_is_not_taken(name: str) -> None:
    sign = {"github": senders.github, "bitbucket": senders.bitbucket}[name]
    sent = sign(b"{}", KEY, AT)
    header = {"github": "X-Hub-Signature-256", "bitbucket": "X-Hub-Signature"}[name]
    weak = "sha1=" + mac(KEY.encode(), b"{}", "sha1").hex()
    outcome = verify(name, changed(sent, {header: weak}))
    assert outcome == Refused(reason=Reason.MALFORMED_HEADER, header=header)


class TestSlack:
    CHALLENGE = "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"

    def body(self, challenge: object = CHALLENGE) -> bytes:
        return to_json({"type": "url_verification", "token": "x", "challenge": challenge})

    def test_challenge_is_to_be_answered_and_not_kept(self) -> None:
        outcome = good(verify("slack", senders.slack(self.body(), KEY, AT)))
        assert outcome.challenge == self.CHALLENGE
        assert outcome.items == ()
        assert outcome.event_type == "url_verification"

    def test_challenge_needs_a_signature(self) -> None:
        sent = senders.slack(self.body(), "another", AT)
        assert verify("slack", sent) == Refused(reason=Reason.WRONG_SIGNATURE)

    @pytest.mark.parametrize("challenge", [None, 7, "", "x" * 256, "a\r\nSet-Cookie: b", ["x"]])
    def test_a_challenge_that_slack_would_not_send_is_not_answered(self, challenge: object) -> None:
        outcome = good(verify("slack", senders.slack(self.body(challenge), KEY, AT)))
        assert outcome.challenge is None
        assert len(outcome.items) == 1

    def test_another_kind_of_request_is_no_challenge(self) -> None:
        body = to_json({"type": "event_callback", "challenge": self.CHALLENGE})
        outcome = good(verify("slack", senders.slack(body, KEY, AT)))
        assert outcome.challenge is None
        assert len(outcome.items) == 1

    def test_event(self) -> None:
        body = to_json(
            {"type": "event_callback", "event_id": "Ev9", "event": {"type": "app_mention"}}
        )
        outcome = good(verify("slack", senders.slack(body, KEY, AT)))
        assert (outcome.event_id, outcome.event_type) == ("Ev9", "app_mention")

    def test_command_has_the_id_of_its_bytes_and_a_retry_the_same(self) -> None:
        body = b"command=%2Fdeploy&trigger_id=1.2"
        first, retry = (good(verify("slack", senders.slack(body, KEY, AT + n))) for n in (0, 60))
        assert first.event_id == retry.event_id
        assert first.items[0].id_source is IdSource.DIGEST

    def test_last_retry_may_have_the_first_timestamp(self) -> None:
        provider = load_provider("slack")
        sent = senders.slack(b"{}", KEY, AT)
        span = provider.facts.retries.span
        assert span is not None
        assert good(verify(provider, sent, now=AT + span + 3))


class TestShopify:
    def test_ids_of_two_shops_or_topics_do_not_meet(self) -> None:
        sent = senders.shopify(b"{}", KEY, AT)
        ids = {
            good(verify("shopify", changed(sent, headers))).event_id
            for headers in ({}, {"X-Shopify-Topic": "orders/paid"}, {"X-Shopify-Shop-Domain": "b"})
        }
        assert len(ids) == 3

    def test_without_event_id_the_webhook_id_counts(self) -> None:
        sent = changed(senders.shopify(b"{}", KEY, AT), {"X-Shopify-Event-Id": None})
        outcome = good(verify("shopify", sent))
        assert outcome.event_id == "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043"

    def test_id_with_long_names_is_the_event_id_alone(self) -> None:
        sent = changed(senders.shopify(b"{}", KEY, AT), {"X-Shopify-Topic": "t" * 255})
        assert good(verify("shopify", sent)).event_id == "98880550-7158-44d4-b7cd-2c97c8a091b5"

    def test_old_event_is_kept_and_tells_its_age(self) -> None:
        outcome = good(verify("shopify", senders.shopify(b"{}", KEY, AT), now=AT + 1e9))
        assert outcome.timestamp == 1790004800.123456


class TestStandardWebhooks:
    SECRET = senders.WHSEC[0].secret

    def test_signature_of_a_rotation_among_versions_of_the_future(self) -> None:
        sent = senders.standard("webhook")(b"{}", b"a" * 24, AT)
        text = sent.headers["webhook-signature"]
        listed = changed(sent, {"webhook-signature": f"v2,x v1,AAAA v1a,AAAA {text} v1,,"})
        assert good(verify("standard_webhooks", listed, self.SECRET))

    @pytest.mark.parametrize("text", ["garbage", "v2,AAAA", "v1", ",", "v1a"])
    def test_no_signature_of_a_known_version(self, text: str) -> None:
        sent = senders.standard("webhook")(b"{}", b"a" * 24, AT)
        outcome = verify(
            "standard_webhooks", changed(sent, {"webhook-signature": text}), self.SECRET
        )
        assert outcome == Refused(reason=Reason.MALFORMED_HEADER, header="webhook-signature")

    def test_number_of_signatures_is_bounded(self) -> None:
        sent = senders.standard("webhook")(b"{}", b"a" * 24, AT)
        text = " ".join(["v1,AAAA"] * 10 + [sent.headers["webhook-signature"]])
        outcome = verify(
            "standard_webhooks", changed(sent, {"webhook-signature": text}), self.SECRET
        )
        assert outcome == Refused(reason=Reason.HEADER_TOO_LONG, header="webhook-signature")

    def test_id_is_of_the_headers_that_were_signed(self) -> None:
        sent = senders.standard("svix")(b"{}", b"a" * 24, AT)
        outcome = good(
            verify("standard_webhooks", changed(sent, {"webhook-id": "invented"}), self.SECRET)
        )
        assert outcome.event_id == sent.headers["svix-id"]


class TestGitLab:
    SIGNING = senders.WHSEC[0].secret

    def test_a_token_is_never_compared_with_a_signing_token(self) -> None:
        sent = senders.gitlab_token(b"{}", self.SIGNING, AT)
        assert verify("gitlab", sent, self.SIGNING) == Refused(reason=Reason.WRONG_SIGNATURE)

    def test_both_while_a_hook_is_changed(self) -> None:
        signed = senders.gitlab(b"{}", b"a" * 24, AT)
        both = changed(signed, {"X-Gitlab-Token": KEY})
        assert good(verify("gitlab", both, self.SIGNING)).event_type == "Push Hook"
        assert good(verify("gitlab", both, KEY))
        assert good(verify("gitlab", senders.gitlab_token(b"{}", KEY, AT), self.SIGNING, KEY))

    def test_only_the_signing_token_leaves_no_way_around(self) -> None:
        outcome = verify("gitlab", senders.gitlab_token(b"{}", KEY, AT), self.SIGNING)
        assert outcome == Refused(reason=Reason.WRONG_SIGNATURE)

    def test_uuid_of_an_event_is_no_id(self) -> None:
        sent = senders.gitlab_token(b"{}", KEY, AT)
        bare = changed(sent, {"Idempotency-Key": None, "X-Gitlab-Event-UUID": "shared"})
        assert good(verify("gitlab", bare)).items[0].id_source is IdSource.DIGEST


class TestLinear:
    BODY = to_json({"type": "Issue", "action": "update", "webhookTimestamp": 0})

    def test_last_retry_comes_byte_for_byte_seven_hours_later(self) -> None:
        sent = senders.linear(self.BODY, KEY, AT)
        outcome = good(verify("linear", sent, now=AT + 25_260 + 5))
        assert outcome.event_type == "Issue.update"
        assert outcome.timestamp == AT

    def test_window_can_be_chosen(self) -> None:
        sent = senders.linear(self.BODY, KEY, AT)
        provider = Linear(tolerance=Tolerance(max_age=60.0, max_future=60.0))
        assert good(verify(provider, sent, now=AT + 60))
        assert verify(provider, sent, now=AT + 61) == Refused(reason=Reason.TOO_OLD, age=61.0)


class TestMailgun:
    BODY = to_json({"event-data": {"id": "E1", "event": "failed"}})

    def test_token_is_what_may_be_used_once(self) -> None:
        outcome = good(verify("mailgun", senders.mailgun(self.BODY, KEY, AT)))
        assert (outcome.event_id, outcome.event_type) == ("E1", "failed")
        assert outcome.nonce == "e0b5477167110d68991efc6b9f89f0a11066af27834600e123"
        assert outcome.nonce not in repr(outcome)

    def test_key_of_the_primary_account(self) -> None:
        payload: dict[str, Any] = json.loads(senders.mailgun(self.BODY, "subaccount", AT).body)
        signature = payload["signature"]
        message = f"{signature['timestamp']}{signature['token']}".encode()
        signature["parent-signature"] = hexed(KEY, message)
        assert good(verify("mailgun", Sent(to_json(payload), {})))

    def test_timestamp_may_be_a_number(self) -> None:
        payload: dict[str, Any] = json.loads(senders.mailgun(self.BODY, KEY, AT).body)
        payload["signature"]["timestamp"] = int(AT)
        assert good(verify("mailgun", Sent(to_json(payload), {})))

    @pytest.mark.parametrize("name", ["timestamp", "token", "signature"])
    @pytest.mark.parametrize("value", [None, "", [], {}, 1.5, "\u0661"])
    def test_signature_of_another_form(self, name: str, value: object) -> None:
        payload: dict[str, Any] = json.loads(senders.mailgun(self.BODY, KEY, AT).body)
        payload["signature"][name] = value
        assert isinstance(verify("mailgun", Sent(to_json(payload), {})), Refused)

    @pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"a=b", b"\xff", b'{"signature": "x"}'])
    def test_body_without_signature(self, body: bytes) -> None:
        assert verify("mailgun", Sent(body, {})) == Refused(reason=Reason.MALFORMED_BODY)

    def test_what_is_parsed_unbelieved_is_bounded(self) -> None:
        sent = senders.mailgun(self.BODY, KEY, AT)
        padded = sent._replace(body=sent.body + b" " * 1_000_000)
        assert good(verify("mailgun", padded)).items[0].body == padded.body
        larger = sent._replace(body=sent.body + b" " * 5_000_000)
        assert verify("mailgun", larger) == Refused(reason=Reason.MALFORMED_BODY)


class TestZendesk:
    def test_fields_of_a_trigger_are_no_ids(self) -> None:
        body = to_json({"id": "ticket-7", "type": "ticket"})
        outcome = good(verify("zendesk", senders.zendesk(body, KEY, AT)))
        assert outcome.event_id == "01J9Z3"
        assert outcome.items[0].id_source is IdSource.HEADER

    def test_timestamp_is_signed_as_it_is_written(self) -> None:
        for time in (iso(AT), "2026-09-21T14:13:20.000Z", "2026-09-21T16:13:20+02:00"):
            signature = base64.b64encode(mac(KEY.encode(), time.encode() + b"{}")).decode()
            headers = {
                "X-Zendesk-Webhook-Signature-Timestamp": time,
                "X-Zendesk-Webhook-Signature": signature,
            }
            assert good(verify("zendesk", Sent(b"{}", headers))).timestamp == AT


class TestHookdeck:
    BODY = to_json({"id": "evt_1", "type": "charge.succeeded"})

    def test_either_signature_of_a_rotation(self) -> None:
        first, second = (senders.hookdeck(self.BODY, key, AT) for key in ("new", "old"))
        old = second.headers["X-Hookdeck-Signature"]
        both = changed(first, {"X-Hookdeck-Signature-2": old})
        for secret in ("new", "old"):
            assert good(verify("hookdeck", both, secret))
        assert isinstance(verify("hookdeck", both, "other"), Refused)

    def test_id_of_the_sender_behind_it(self) -> None:
        sent = senders.hookdeck(self.BODY, KEY, AT)
        ids = [
            good(verify(Hookdeck(origin=load_provider(name) if name else None), sent)).event_id
            for name in (None, "stripe", "github")
        ]
        assert ids == ["evt_eNycCNgd99CGUBflic", "evt_1", "72d3162e-cc78-11e3-81ab-4c9367dc0958"]

    def test_batch_of_the_sender_behind_it(self) -> None:
        body = to_json([{"sg_event_id": "a"}, {"sg_event_id": "b"}])
        provider = Hookdeck(origin=load_provider("sendgrid"))
        outcome = good(verify(provider, senders.hookdeck(body, KEY, AT)))
        assert [item.event_id for item in outcome.items] == ["a", "b"]

    def test_own_id_where_the_sender_behind_it_gives_none(self) -> None:
        provider = Hookdeck(origin=load_provider("stripe"))
        outcome = good(verify(provider, senders.hookdeck(b"no json", KEY, AT)))
        assert outcome.event_id == "evt_eNycCNgd99CGUBflic"

    def test_headers_of_a_project_with_another_prefix(self) -> None:
        sent = senders.hookdeck(self.BODY, KEY, AT)
        renamed = {name.replace("Hookdeck", "Acme"): text for name, text in sent.headers.items()}
        provider = Hookdeck(header_prefix="X-Acme")
        outcome = good(verify(provider, sent._replace(headers=renamed)))
        assert outcome.event_id == "evt_eNycCNgd99CGUBflic"


def test_hmac_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[object, object]] = []
    real = hmac.compare_digest

    def compare(made: bytes, given: bytes) -> bool:
        compared.append((made, given))
        return real(made, given)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    sent = senders.github(b"{}", KEY, AT)
    assert good(verify("github", sent))
    given = sent.headers["X-Hub-Signature-256"].removeprefix("sha256=").encode()
    assert compared == [(given, given)]
