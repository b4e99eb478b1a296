"""Why a captured request is not believed: each cause is found, and named."""

from __future__ import annotations

import json

import pytest

from gunicorn_admission.webhooks.intake import Key, Source
from gunicorn_admission.webhooks.intake.diagnose import Diagnosis, diagnose
from gunicorn_admission.webhooks.providers import Verified
from tests import senders
from tests.intake_calls import SECRET, github_sent
from tests.sender_cases import SENDERS, Sender
from tests.senders import AT, Sent

GIT = Source("git", provider="github", secrets=[Key(key_id="now", value=SECRET)])
BODY = '{"b": 1, "a": "10 €"}\n'.encode()


def of(source: Source, sent: Sent, *others: Source, now: float = AT, query: str = "") -> Diagnosis:
    return diagnose(source, sent.body, list(sent.headers.items()), query, now, others)


def only(found: Diagnosis) -> str:
    assert not isinstance(found.outcome, Verified)
    (finding,) = found.findings
    return finding


def test_genuine() -> None:
    found = of(GIT, github_sent(BODY, "d-1"))
    assert isinstance(found.outcome, Verified)
    assert (found.key_id, found.findings) == ("now", ())


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (BODY.rstrip(), "its last line end is missing"),
        (BODY + b"\n", "a line end was added"),
        (BODY.replace(b"\n", b"\r\n"), "line ends were changed"),
        (b"\xef\xbb\xbf" + BODY, "a byte order mark was added"),
    ],
)
def test_changed_body(body: bytes, says: str) -> None:
    sent = github_sent(BODY, "d-1")._replace(body=body)
    assert any(says in finding for finding in of(GIT, sent).findings)


@pytest.mark.parametrize("indent", [None, 2])
def test_parsed_and_written_again(indent: int | None) -> None:
    for ascii_only in (True, False):
        original = json.dumps({"b": 1, "a": "€"}, ensure_ascii=ascii_only).encode()
        again = json.dumps(json.loads(original), indent=indent or 1, ensure_ascii=True).encode()
        sent = github_sent(original, "d-1")._replace(body=again)
        assert "its JSON was parsed and written again" in only(of(GIT, sent))


def test_wrong_key() -> None:
    sent = github_sent(BODY, "d-1", "another")
    assert "none of the secrets made this signature" in only(of(GIT, sent))
    other = Source("shop", provider="shopify", secrets=["another"])
    assert "the source 'shop'" in only(of(GIT, sent, GIT, other))


def test_ended_key() -> None:
    ended = Key(key_id="last-year", value="another", not_after=AT - 1)
    source = Source("git", provider="github", secrets=[*GIT.secrets, ended])
    sent = github_sent(BODY, "d-1", "another")
    assert only(of(source, sent)) == "this is signed with the secret 'last-year', which has ended"
    source = Source("git", provider="github", secrets=[ended])
    assert any("'last-year', which has ended" in one for one in of(source, sent).findings)


def test_clock() -> None:
    source = Source("pay", provider="stripe", secrets=["whsec_x"])
    sent = senders.stripe(BODY, "whsec_x", AT)
    assert "made 4000 s ago: one of the clocks" in only(of(source, sent, now=AT + 4000))
    assert "made 4000 s in the future" in only(of(source, sent, now=AT - 4000))


def test_url() -> None:
    sent = senders.square(b"{}", "key", AT, "https://shop.example.com/hooks/sq?x=1")
    missing = Source("sq", provider="square", secrets=["key"])
    assert "--public-url" in only(of(missing, sent, query="x=1"))
    for wrong in ("http://shop.example.com/hooks/sq", "https://shop.example.com/hooks/sq/"):
        source = Source("sq", provider="square", secrets=["key"], url=wrong)
        assert "https://shop.example.com/hooks/sq?x=1" in only(of(source, sent, query="x=1"))
    behind = Source("sq", provider="square", secrets=["key"], url="http://app:8000/hooks/sq")
    sent = sent._replace(headers={**sent.headers, "Host": "shop.example.com"})
    assert "https://shop.example.com/hooks/sq?x=1" in only(of(behind, sent, query="x=1"))


def test_missing_header_and_another_sender() -> None:
    bare = Sent(BODY, {"X-GitHub-Event": "push"})
    assert "GitHub sends none where no secret is set there" in only(of(GIT, bare))
    slack = senders.slack(BODY, "x", AT)
    assert any("which Slack sends" in finding for finding in of(GIT, slack).findings)


def test_secret_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNSET", raising=False)
    source = Source("git", provider="github", secrets=[Key(key_id="a", value="env:UNSET")])
    found = of(source, github_sent(BODY, "d-1"))
    assert "secret 'a' cannot be used" in found.findings[0]


@pytest.mark.parametrize("sender", SENDERS, ids=[one.name for one in SENDERS])
def test_every_sender_can_be_diagnosed(sender: Sender) -> None:
    keys = [Key(key_id="a", value=sender.keys[0].secret)]
    source = Source(sender.name, provider=sender.provider, secrets=keys, url=senders.URL)
    sent = sender.sign(sender.body, sender.keys[0].private, AT)
    query = sent.url.partition("?")[2]
    assert isinstance(of(source, sent, query=query).outcome, Verified)
    wrong = sender.sign(sender.body, sender.keys[1].private, AT)
    if wrong != sent:
        found = of(source, wrong, query=query)
        assert not isinstance(found.outcome, Verified)
        assert found.findings
        assert sender.keys[0].secret not in " ".join(found.findings)
