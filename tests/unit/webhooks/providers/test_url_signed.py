"""Senders that sign the URL: Twilio, Square and HubSpot."""

from __future__ import annotations

import base64
import hashlib

import pytest

from gunicorn_admission.webhooks.providers import (
    IdSource,
    Reason,
    Refused,
)
from tests import senders
from tests.senders import AT, URL, Sent, mac, to_json
from tests.verifying import KEY, changed, good, verify


class TestTwilio:
    FORM = b"MessageSid=SM1&MessageStatus=delivered"

    def test_form(self) -> None:
        outcome = good(verify("twilio", senders.twilio(self.FORM, KEY, AT)))
        assert outcome.event_type == "delivered"
        assert outcome.items[0].id_source is IdSource.HEADER

    def test_body_that_nothing_signs(self) -> None:
        sent = senders.twilio(self.FORM, KEY, AT)
        for kind in ("application/json", "text/plain", None):
            outcome = verify("twilio", changed(sent, {"Content-Type": kind}))
            assert outcome == Refused(reason=Reason.BODY_NOT_SIGNED)

    def test_signature_of_a_url_with_a_hash_is_not_good_for_a_form(self) -> None:
        sent = senders.twilio_json(b"[]", KEY, AT)
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        for body in (b"&&", b"", b"a=b"):
            outcome = verify("twilio", changed(sent, kind)._replace(body=body))
            assert outcome == Refused(reason=Reason.WRONG_SIGNATURE)

    def test_a_hash_that_only_looks_like_the_parameter(self) -> None:
        digest = hashlib.sha256(b"[]").hexdigest()
        for query in (f"xbodySHA256={digest}", f"bodySHA256={digest}0", f"bodySHA256={digest[1:]}"):
            url = f"https://example.com/?{query}"
            signature = base64.b64encode(mac(KEY.encode(), url.encode(), "sha1")).decode()
            headers = {"X-Twilio-Signature": signature, "Content-Type": "application/json"}
            outcome = verify("twilio", Sent(b"[]", headers, url))
            assert outcome == Refused(reason=Reason.BODY_NOT_SIGNED)

    def test_empty_body_needs_no_hash(self) -> None:
        signature = base64.b64encode(mac(KEY.encode(), URL.encode(), "sha1")).decode()
        assert good(verify("twilio", Sent(b"", {"X-Twilio-Signature": signature})))

    def test_unknown_algorithm(self) -> None:
        header = "X-Twilio-Webhooks-Signature-Settings"
        sent = changed(senders.twilio(self.FORM, KEY, AT), {header: "key=1,algorithm=HMAC_MD5"})
        assert verify("twilio", sent) == Refused(reason=Reason.UNSUPPORTED_ALGORITHM, header=header)

    def test_blanks_in_the_list_of_settings(self) -> None:
        header = "X-Twilio-Webhooks-Signature-Settings"
        sent = senders.twilio_json(b"[]", KEY, AT)
        assert good(verify("twilio", changed(sent, {header: "key=1, algorithm = HMAC_SHA256 "})))

    def test_algorithm_that_is_not_named_is_the_old_one(self) -> None:
        header = "X-Twilio-Webhooks-Signature-Settings"
        for settings in ("", "key=1", "key=1,algorithm=HMAC_SHA1"):
            assert good(
                verify("twilio", changed(senders.twilio(self.FORM, KEY, AT), {header: settings}))
            )

    def test_number_of_fields_is_bounded(self) -> None:
        sent = senders.twilio(self.FORM, KEY, AT)._replace(body=b"a&" * 1000)
        assert verify("twilio", sent) == Refused(reason=Reason.MALFORMED_BODY)

    def test_url_is_needed_and_bounded(self) -> None:
        sent = senders.twilio(self.FORM, KEY, AT)
        assert verify("twilio", sent, url="") == Refused(reason=Reason.URL_MISSING)
        assert verify("twilio", sent, url=URL + "x" * 9000) == Refused(reason=Reason.URL_TOO_LONG)

    @pytest.mark.parametrize(
        ("given", "signed"),
        [
            ("https://a.example/", "https://a.example:443/"),
            ("https://a.example:8443/x", "https://a.example/x"),
            ("http://user:word@a.example/x?y=//b:9", "http://user:word@a.example:80/x?y=//b:9"),
            ("https://[2001:db8::1]/x", "https://[2001:db8::1]:443/x"),
            ("https://a.example", "https://a.example:443"),
            ("twilio://a", "twilio://a"),
        ],
    )
    def test_port_may_be_there_or_not(self, given: str, signed: str) -> None:
        for url in (given, signed):
            signature = base64.b64encode(mac(KEY.encode(), url.encode(), "sha1")).decode()
            sent = Sent(b"", {"X-Twilio-Signature": signature}, given)
            assert good(verify("twilio", sent))

    def test_another_host_is_another_url(self) -> None:
        sent = senders.twilio(self.FORM, KEY, AT)
        for url in (URL.replace("hooks", "hook"), URL + "&a=1", URL.replace("https", "http")):
            assert verify("twilio", sent, url=url) == Refused(reason=Reason.WRONG_SIGNATURE)


class TestSquareAndHubSpot:
    @pytest.mark.parametrize("name", ["square", "hubspot"])
    def test_the_configured_url_is_signed(self, name: str) -> None:
        sent = {"square": senders.square, "hubspot": senders.hubspot}[name](b"{}", KEY, AT)
        assert good(verify(name, sent))
        assert verify(name, sent, url=URL + "/") == Refused(reason=Reason.WRONG_SIGNATURE)
        assert verify(name, sent, url="") == Refused(reason=Reason.URL_MISSING)

    def test_hubspot_signs_a_url_with_some_characters_decoded(self) -> None:
        given = "https://a.example/x?back=https%3A%2F%2Fb.example%3fq&mail=a%40b&kept=%20%25"
        signed = "https://a.example/x?back=https://b.example?q&mail=a@b&kept=%20%25"
        time = f"{AT * 1000:.0f}"
        for url in (given, signed):
            message = b"POST" + url.encode() + b"[]" + time.encode()
            signature = base64.b64encode(mac(KEY.encode(), message)).decode()
            headers = {"X-HubSpot-Request-Timestamp": time, "X-HubSpot-Signature-v3": signature}
            assert good(verify("hubspot", Sent(b"[]", headers, given))).items == ()

    def test_hubspot_events_with_one_event_id_stay_apart(self) -> None:
        events = [
            {"portalId": 1, "subscriptionId": 2, "eventId": 3, "occurredAt": 4000},
            {"portalId": 9, "subscriptionId": 2, "eventId": 3, "occurredAt": 4000},
            {"portalId": 1, "subscriptionId": 2, "eventId": 3, "subscriptionType": "a.b"},
            {"portalId": 1},
        ]
        outcome = good(verify("hubspot", senders.hubspot(to_json(events), KEY, AT)))
        ids = [item.event_id for item in outcome.items]
        assert ids[:3] == ["1:2:3:4000", "9:2:3:4000", "1:2:3:"]
        assert outcome.items[0].timestamp == 4.0
        assert outcome.items[2].event_type == "a.b"
        assert outcome.items[3].id_source is IdSource.DIGEST
