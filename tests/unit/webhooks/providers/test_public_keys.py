"""Senders whose keys are public, and what they need installed."""

from __future__ import annotations

import base64
import builtins
import sys
from typing import Any

import pytest

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.providers import (
    Reason,
    Refused,
    Secret,
    Tolerance,
    load_provider,
)
from gunicorn_admission.webhooks.providers.paypal import PayPal
from tests import senders
from tests.senders import AT, CERTIFICATE_URL, to_json
from tests.verifying import KEY, changed, good, verify

pytest.importorskip("cryptography")

from tests.sender_cases import PAYPAL


class TestPayPal:
    BODY = to_json({"id": "WH-1", "event_type": "PAYMENT.SALE.COMPLETED"})

    def test_transmission_is_what_may_be_used_once(self) -> None:
        outcome = good(verify(PAYPAL, senders.paypal(self.BODY, KEY, AT)))
        assert outcome.nonce == "69cd13f0-d67a-11e5-baa3-778b53f4ae55"
        assert (outcome.event_id, outcome.event_type) == ("WH-1", "PAYMENT.SALE.COMPLETED")

    def test_certificate_from_elsewhere_is_not_asked_for(self) -> None:
        def never(url: str) -> bytes:
            raise AssertionError(url)

        url = "https://evil.test/v1/notifications/certs/CERT"
        sent = changed(senders.paypal(self.BODY, KEY, AT), {"PAYPAL-CERT-URL": url})
        assert verify(PayPal(certificates=never), sent) == Refused(
            reason=Reason.UNTRUSTED_KEY, header="PAYPAL-CERT-URL"
        )

    def test_certificate_that_cannot_be_had_now_is_our_trouble(self) -> None:
        outcome = verify(PayPal(certificates=lambda url: None), senders.paypal(self.BODY, KEY, AT))
        assert outcome == Refused(reason=Reason.KEY_UNAVAILABLE, header="PAYPAL-CERT-URL")
        assert isinstance(outcome, Refused)
        assert outcome.temporary
        assert not Refused(reason=Reason.WRONG_SIGNATURE).temporary

    @pytest.mark.parametrize("pem", [b"", b"pem", b"-----BEGIN CERTIFICATE-----\n"])
    def test_certificate_that_is_none(self, pem: bytes) -> None:
        outcome = verify(PayPal(certificates=lambda url: pem), senders.paypal(self.BODY, KEY, AT))
        assert outcome == Refused(reason=Reason.UNTRUSTED_KEY, header="PAYPAL-CERT-URL")

    def test_certificate_that_has_ended(self) -> None:
        provider = PayPal(certificates=PAYPAL.certificates, tolerance=Tolerance())
        sent = senders.paypal(self.BODY, KEY, AT)
        days = 86400.0
        assert good(verify(provider, sent, now=AT + 29 * days))
        for now in (AT + 31 * days, AT - 31 * days):
            assert verify(provider, sent, now=now) == Refused(
                reason=Reason.UNTRUSTED_KEY, header="PAYPAL-CERT-URL"
            )

    def test_another_algorithm(self) -> None:
        sent = changed(senders.paypal(self.BODY, KEY, AT), {"PAYPAL-AUTH-ALGO": "SHA1withRSA"})
        assert verify(PAYPAL, sent) == Refused(
            reason=Reason.UNSUPPORTED_ALGORITHM, header="PAYPAL-AUTH-ALGO"
        )

    def test_certificate_url_of_the_test_is_trusted(self) -> None:
        assert PAYPAL.certificates(CERTIFICATE_URL)


class TestPublicKeys:
    def test_key_in_pem(self) -> None:
        key = senders.ecdsa_keys()[0]
        lines = [key.secret[at : at + 64] for at in range(0, len(key.secret), 64)]
        pem = "\n".join(["-----BEGIN PUBLIC KEY-----", *lines, "-----END PUBLIC KEY-----"])
        assert good(verify("sendgrid", senders.sendgrid(b"[]", key.private, AT), pem))

    def test_key_of_another_curve(self) -> None:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        public = ec.derive_private_key(7, ec.SECP384R1()).public_key()
        value = public.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        with pytest.raises(ConfigError, match="ECDSA P-256 public key"):
            load_provider("sendgrid").check_secret(Secret(base64.b64encode(value).decode()))

    def test_signature_has_one_spelling(self) -> None:
        key = senders.ed25519_keys()[0]
        sent = senders.standard_public(b"{}", key.private, AT)
        text = sent.headers["webhook-signature"]
        assert text.endswith("==")
        after = chr(ord(text[-3]) + 1)  # changes only bits that the last character does not need
        other = text[:-3] + after + "=="
        assert base64.b64decode(other[4:]) == base64.b64decode(text[4:])
        outcome = verify(
            "standard_webhooks", changed(sent, {"webhook-signature": other}), key.secret
        )
        assert outcome == Refused(reason=Reason.WRONG_SIGNATURE)

    @pytest.mark.parametrize("value", ["no base64", "AAAA", senders.ed25519_keys()[0].secret[5:]])
    def test_key_of_another_kind(self, value: str) -> None:
        with pytest.raises(ConfigError, match="ECDSA P-256 public key") as caught:
            load_provider("sendgrid").check_secret(Secret(value))
        assert value not in str(caught.value)

    @pytest.mark.parametrize(
        ("name", "secret"),
        [
            ("sendgrid", senders.ecdsa_keys()[0].secret),
            ("paypal", "1JE4291016473214C"),
            ("standard_webhooks", senders.ed25519_keys()[1].secret),
        ],
    )
    def test_missing_extra_is_one_sentence(
        self, name: str, secret: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = builtins.__import__

        def without(module: str, *args: Any, **kwargs: Any) -> Any:
            if module.partition(".")[0] == "cryptography":
                raise ImportError(module)
            return real(module, *args, **kwargs)

        from gunicorn_admission.webhooks.providers import asymmetric

        asymmetric.ecdsa_key.cache_clear()
        asymmetric.ed25519_key.cache_clear()
        monkeypatch.setattr(builtins, "__import__", without)
        with pytest.raises(
            ConfigError, match=r"pip install 'gunicorn-admission\[asym\]'"
        ) as caught:
            load_provider(name).check_secret(Secret(secret))
        assert "\n" not in str(caught.value)

    def test_shared_secrets_need_no_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "cryptography", None)
        load_provider("standard_webhooks").check_secret(Secret(senders.WHSEC[0].secret))
        sent = senders.standard("webhook")(b"{}", b"a" * 24, AT)
        assert good(verify("standard_webhooks", sent, senders.WHSEC[0].secret))


class TestStandardWebhooks:
    SECRET = senders.WHSEC[0].secret

    def test_a_public_key_and_a_shared_secret_side_by_side(self) -> None:
        public = senders.ed25519_keys()[0]
        shared = senders.standard("webhook")(b"{}", b"a" * 24, AT)
        signed = senders.standard_public(b"{}", public.private, AT)
        for position, sent in enumerate((signed, shared)):
            outcome = good(verify("standard_webhooks", sent, public.secret, self.SECRET))
            assert outcome.secret == position

    def test_a_shared_secret_does_not_make_the_other_version(self) -> None:
        sent = senders.standard("webhook")(b"{}", b"a" * 24, AT)
        text = sent.headers["webhook-signature"].replace("v1,", "v1a,")
        for secret in (self.SECRET, senders.ed25519_keys()[0].secret):
            outcome = verify(
                "standard_webhooks", changed(sent, {"webhook-signature": text}), secret
            )
            assert outcome == Refused(reason=Reason.WRONG_SIGNATURE)

    def test_a_public_key_of_another_length(self) -> None:
        secret = Secret("whpk_" + base64.b64encode(b"1" * 31).decode())
        with pytest.raises(ConfigError, match="Ed25519 public key of 32 bytes"):
            load_provider("standard_webhooks").check_secret(secret)
