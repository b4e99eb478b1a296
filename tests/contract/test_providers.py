"""
What every provider must do with good, damaged, stale and hostile requests.

To add one, add a sender to ``tests/sender_cases.py``. What a sender does not do by design is
written there, with the reason; the tests for it are then not made for that sender.
"""

from __future__ import annotations

import hmac
import json
import random
from collections.abc import Callable, Sequence
from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gunicorn_admission.webhooks.providers import (
    IdSource,
    Outcome,
    Reason,
    Refused,
    Secret,
    Verified,
    provider_names,
)

pytest.importorskip("cryptography")

from tests.sender_cases import (
    ANY_BODY,
    COVERS_BODY,
    IS_DATED,
    SECRET_IS_SECRET,
    SENDERS,
    Sender,
)
from tests.senders import AT, Sent

MEGABYTE = 1_000_000


def every(*properties: str) -> pytest.MarkDecorator:
    """Run for each sender that has these properties."""
    having = [sender for sender in SENDERS if not set(properties) & set(sender.lacks)]
    return pytest.mark.parametrize("sender", having, ids=[sender.name for sender in having])


def sign(sender: Sender, body: bytes | None = None, *, key: int = 0, at: float = AT) -> Sent:
    return sender.sign(sender.body if body is None else body, sender.keys[key].private, at)


def verify(
    sender: Sender, sent: Sent, *, secrets: Sequence[Secret] | None = None, now: float = AT
) -> Outcome:
    if secrets is None:
        secrets = [Secret(sender.keys[0].secret)]
    return sender.provider.verify(sent.body, sent.headers, sent.url, secrets, now)


def reason(outcome: Outcome) -> Reason | None:
    return outcome.reason if isinstance(outcome, Refused) else None


def flipped(text: str) -> list[str]:
    return [text[:i] + chr(ord(text[i]) ^ 1) + text[i + 1 :] for i in range(len(text))]


def with_header(sent: Sent, name: str, value: str) -> Sent:
    return sent._replace(headers={**sent.headers, name: value})


def test_every_provider_is_here() -> None:
    assert {sender.provider.facts.name for sender in SENDERS} == set(provider_names())


@every()
def test_good_signature(sender: Sender) -> None:
    sent = sign(sender)
    outcome = verify(sender, sent)
    assert isinstance(outcome, Verified)
    assert outcome.secret == 0
    assert tuple(item.event_id for item in outcome.items) == sender.event_ids
    assert all(item.id_source is not IdSource.DIGEST for item in outcome.items)
    if len(outcome.items) == 1 and outcome.items[0].event_id == outcome.event_id:
        assert outcome.items[0].body is sent.body


@every(IS_DATED)
def test_tells_when_it_was_signed(sender: Sender) -> None:
    outcome = verify(sender, sign(sender))
    assert isinstance(outcome, Verified)
    assert outcome.timestamp == AT


@every()
def test_header_names_in_any_case_and_as_pairs(sender: Sender) -> None:
    sent = sign(sender)
    for change in (str.lower, str.upper):
        pairs = [(change(name), value) for name, value in sent.headers.items()]
        outcome = sender.provider.verify(
            sent.body, iter(pairs), sent.url, [Secret(sender.keys[0].secret)], AT
        )
        assert isinstance(outcome, Verified)


@every(COVERS_BODY)
def test_each_byte_of_the_body_counts(sender: Sender) -> None:
    sent = sign(sender)
    for at in range(len(sent.body)):
        body = bytearray(sent.body)
        body[at] ^= 1
        assert reason(verify(sender, sent._replace(body=bytes(body)))) is Reason.WRONG_SIGNATURE
    for longer_or_shorter in (sent.body + b"\n", sent.body[:-1], b"\xef\xbb\xbf" + sent.body):
        outcome = verify(sender, sent._replace(body=longer_or_shorter))
        assert reason(outcome) is Reason.WRONG_SIGNATURE


@every()
def test_each_byte_of_what_is_signed_counts(sender: Sender) -> None:
    sent = sign(sender)
    for name in sender.signed:
        for value in flipped(sent.headers[name]):
            assert reason(verify(sender, with_header(sent, name, value))) is not None


@every()
def test_wrong_secret(sender: Sender) -> None:
    wrong = [Secret(sender.keys[1].secret)]
    assert reason(verify(sender, sign(sender), secrets=wrong)) is Reason.WRONG_SIGNATURE


@every()
def test_all_secrets_of_a_rotation(sender: Sender) -> None:
    both = [Secret(key.secret, not_after=AT + 3600) for key in sender.keys]
    for key in (0, 1):
        outcome = verify(sender, sign(sender, key=key), secrets=both)
        assert isinstance(outcome, Verified)
        assert outcome.secret == key


@every()
def test_secret_ends(sender: Sender) -> None:
    sent = sign(sender)
    old = Secret(sender.keys[0].secret, not_after=AT)
    new = Secret(sender.keys[1].secret)
    assert isinstance(verify(sender, sent, secrets=[old]), Verified)
    assert reason(verify(sender, sent, secrets=[old], now=AT + 1)) is Reason.NO_ACTIVE_SECRET
    assert reason(verify(sender, sent, secrets=[old, new], now=AT + 1)) is Reason.WRONG_SIGNATURE
    assert reason(verify(sender, sent, secrets=[])) is Reason.NO_ACTIVE_SECRET


@every(SECRET_IS_SECRET)
def test_what_stands_in_for_no_secret_opens_nothing(sender: Sender) -> None:
    decoy = sender.provider.decoy
    assert decoy is not None
    key = sender.provider.key(decoy) if isinstance(sender.keys[0].private, bytes) else decoy
    sent = sender.sign(sender.body, key, AT)
    assert reason(verify(sender, sent, secrets=[])) is Reason.NO_ACTIVE_SECRET


@every(IS_DATED)
def test_replay_beyond_tolerance(sender: Sender) -> None:
    sent = sign(sender)
    tolerance = sender.provider.tolerance
    assert tolerance.max_age is not None
    assert tolerance.max_future is not None
    last, first = AT + tolerance.max_age, AT - tolerance.max_future
    assert isinstance(verify(sender, sent, now=last), Verified)
    assert isinstance(verify(sender, sent, now=first), Verified)
    late, early = verify(sender, sent, now=last + 1), verify(sender, sent, now=first - 1)
    assert late == Refused(reason=Reason.TOO_OLD, age=tolerance.max_age + 1)
    assert early == Refused(reason=Reason.IN_THE_FUTURE, age=-tolerance.max_future - 1)


@every(IS_DATED)
def test_age_is_looked_at_after_the_signature(sender: Sender) -> None:
    tolerance = sender.provider.tolerance
    assert tolerance.max_age is not None
    stale = AT + tolerance.max_age + 1
    wrong = [Secret(sender.keys[1].secret)]
    assert reason(verify(sender, sign(sender), secrets=wrong, now=stale)) is Reason.WRONG_SIGNATURE


@every()
def test_missing_header(sender: Sender) -> None:
    sent = sign(sender)
    for name in sender.signed:
        rest = {key: value for key, value in sent.headers.items() if key != name}
        for headers in (rest, {**rest, name: ""}, {**rest, name: "  "}):
            outcome = verify(sender, sent._replace(headers=headers))
            assert isinstance(outcome, Refused)
            assert outcome.reason is Reason.MISSING_HEADER
    if sender.signed:
        assert reason(verify(sender, sent._replace(headers={}))) is Reason.MISSING_HEADER


@every()
def test_header_that_comes_twice(sender: Sender) -> None:
    sent = sign(sender)
    secrets = [Secret(sender.keys[0].secret)]
    for name in sender.signed:
        twice = [*sent.headers.items(), (name.upper(), sent.headers[name])]
        outcome = sender.provider.verify(sent.body, twice, sent.url, secrets, AT)
        assert outcome == Refused(reason=Reason.DUPLICATE_HEADER, header=name)
        joined = f"{sent.headers[name]},{sent.headers[name]}"
        assert reason(verify(sender, with_header(sent, name, joined))) is not None


@every()
def test_oversized_header(sender: Sender) -> None:
    sent = sign(sender)
    for name in sender.signed:
        for value in ("a" * MEGABYTE, sent.headers[name] + "," * MEGABYTE):
            outcome = verify(sender, with_header(sent, name, value))
            assert outcome == Refused(reason=Reason.HEADER_TOO_LONG, header=name)


@every()
def test_id_in_a_header_is_one_id_or_none(sender: Sender) -> None:
    sent, at = sign(sender), sender.provider.facts.event_id
    assert at is not None
    if at.header is None or at.body is not None or at.header in sender.signed:
        return
    if at.header not in sent.headers:  # that of another form of this sender
        return
    for value, expected in [
        ("x" * 256, Reason.HEADER_TOO_LONG),
        ("one, other", Reason.MALFORMED_HEADER),
        ("\x00", Reason.MALFORMED_HEADER),
    ]:
        outcome = verify(sender, with_header(sent, at.header, value))
        assert outcome == Refused(reason=expected, header=at.header)


@every()
@pytest.mark.parametrize(
    "text", ["é", "\u0661", "\x00", "\t", "\r\n", "\ud800", "\U0001f389", "\xff", "\x7f"]
)
def test_header_with_other_than_visible_ascii(sender: Sender, text: str) -> None:
    sent = sign(sender)
    for name in sender.signed:
        for value in (text, sent.headers[name] + text, text + sent.headers[name]):
            outcome = verify(sender, with_header(sent, name, value))
            assert outcome == Refused(reason=Reason.MALFORMED_HEADER, header=name)


@every(ANY_BODY)
@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe\x00", b"not json", b"null", b"[]", b'"text"', b"[" * 100_000],
    ids=["empty", "binary", "text", "null", "array", "string", "deep"],
)
def test_genuine_body_of_another_kind_is_kept(sender: Sender, body: bytes) -> None:
    outcome = verify(sender, sign(sender, body))
    assert isinstance(outcome, Verified)
    assert b"".join(item.body for item in outcome.items) in (body, b"")


@every(ANY_BODY)
def test_body_of_a_megabyte(sender: Sender) -> None:
    body = sender.body.rstrip()[:-1] + b" " * MEGABYTE + sender.body.rstrip()[-1:]
    sent = sign(sender, body)
    outcome = verify(sender, sent)
    assert isinstance(outcome, Verified)
    assert tuple(item.event_id for item in outcome.items) == sender.event_ids
    if COVERS_BODY not in sender.lacks:
        sent = sent._replace(body=sent.body[:-1] + b" ")
        assert reason(verify(sender, sent)) is Reason.WRONG_SIGNATURE


@every()
def test_same_request_has_the_same_id(sender: Sender) -> None:
    first, again = verify(sender, sign(sender)), verify(sender, sign(sender))
    assert isinstance(first, Verified)
    assert isinstance(again, Verified)
    assert first.items == again.items


@every(COVERS_BODY, ANY_BODY)
def test_without_an_id_the_bytes_are_the_id(sender: Sender) -> None:
    def bare(body: bytes) -> Verified:
        sent = sign(sender, body)
        needed = {*sender.signed, "X-Twilio-Webhooks-Signature-Settings", "Content-Type"}
        headers = {name: value for name, value in sent.headers.items() if name in needed}
        outcome = verify(sender, sent._replace(headers=headers))
        assert isinstance(outcome, Verified)
        return outcome

    one, other = bare(b"one"), bare(b"other")
    if "webhook-id" in sender.signed or "svix-id" in sender.signed:
        assert one.event_id == other.event_id == sender.event_ids[0]
    else:
        assert one.items[0].id_source is IdSource.DIGEST
        assert one.event_id != other.event_id
        assert one.event_id == bare(b"one").event_id


@every()
def test_answers_show_neither_secret_nor_body(sender: Sender) -> None:
    sent = sign(sender)
    for secrets in ([Secret(sender.keys[0].secret)], [Secret(sender.keys[1].secret)], []):
        for shown in (repr(verify(sender, sent, secrets=secrets)), repr(secrets)):
            assert all(key.secret not in shown for key in sender.keys)
            assert sent.body.decode() not in shown


@every(SECRET_IS_SECRET)
def test_work_does_not_depend_on_the_secret(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = sign(sender, key=0)
    current, other = (Secret(key.secret) for key in sender.keys)

    def work(secrets: Sequence[Secret]) -> list[str]:
        done: list[str] = []

        def counted(name: str, call: Callable[..., object]) -> Callable[..., object]:
            def instead(*args: object, **kwargs: object) -> object:
                done.append(name)
                return call(*args, **kwargs)

            return instead

        with monkeypatch.context() as patch:
            for name in ("new", "compare_digest"):
                patch.setattr(hmac, name, counted(name, getattr(hmac, name)))
            verify(sender, sent, secrets=secrets)
        return done

    wrong = work([other])
    assert "compare_digest" in wrong
    assert work([current]) == wrong
    if sender.name != "gitlab-token":  # the form of a secret decides how it is compared
        assert work([]) == wrong
    assert work([current, other]) == work([other, current]) == work([other, other])


def ascii_or_any(*likely: str) -> st.SearchStrategy[str]:
    return st.sampled_from(likely) | st.text(max_size=60)


TIMES = ("0", "1790000000", "1790000000000", "-1", "1e9", "9" * 400, "nan", "2026-13-01", "٣")
VALUES = ascii_or_any(
    *TIMES,
    *(f"t={time},v1=00" for time in TIMES),
    *(f"ts={time};h1=00" for time in TIMES),
    "sha256=", "sha256=zz", "v0=", "v1,", "v1,a,b", "v1a,AAAA", "v1, v1, v1a,", "=", ",", ";",
    "t=", "t=1,t=2,v1=a", "application/json", "application/x-www-form-urlencoded",
    "key=,algorithm=HMAC_MD5", "SHA256withRSA", "https://api.paypal.com.evil.test/v1/",
)  # fmt: skip
BODIES = st.binary(max_size=200) | st.sampled_from(
    [
        b"",
        b"[" * 5000,
        b"a=1&" * 1000,
        b"%zz&=&&%",
        b'{"signature": {"timestamp": 1e999, "token": [], "signature": {}}}',
        b'{"signature": {"timestamp": "1", "token": "t", "signature": "\\ud800"}}',
        b'{"signature": null, "type": "url_verification", "challenge": 7}',
    ]
)
URLS = st.text(max_size=60) | st.sampled_from(
    ["", "https://[", "http://h:x/?bodySHA256=", "https://e?a=%3", "x" * 9000, "\ud800"]
)
repeatable = settings(deadline=None, derandomize=True, max_examples=40)


@every()
@repeatable
@given(data=st.data())
def test_hostile_request_gives_a_reason(sender: Sender, data: st.DataObject) -> None:
    names = [*sign(sender).headers, "Content-Type"]
    pairs = data.draw(st.lists(st.tuples(st.sampled_from(names), VALUES), max_size=8))
    body, url = data.draw(BODIES), data.draw(URLS)
    now = data.draw(st.floats(0, 4e9))
    secrets = [Secret(key.secret) for key in sender.keys]
    outcome = sender.provider.verify(body, pairs, url, secrets, now)
    assert isinstance(outcome, Refused)
    assert isinstance(outcome.reason, Reason)


@every()
def test_damaged_request_gives_a_reason(sender: Sender) -> None:
    chance = random.Random(sender.name)
    good = sign(sender)
    secrets = [Secret(key.secret) for key in sender.keys]

    def damaged(text: str) -> str:
        start, end = sorted(chance.choices(range(len(text) + 1), k=2))
        between = chance.choice(["", "=", ",", ";", " ", "\x00", "é", "9" * 20, text])
        return text[:start] + between + text[end:]

    for _ in range(300):
        headers = [
            (name, damaged(value) if chance.random() < 0.3 else value)
            for name, value in good.headers.items()
            if chance.random() < 0.95
        ]
        text = good.body.decode()
        body = (damaged(text) if chance.random() < 0.3 else text).encode(errors="surrogatepass")
        url = damaged(good.url) if chance.random() < 0.1 else good.url
        outcome = sender.provider.verify(body, headers, url, secrets, AT)
        if isinstance(outcome, Verified) and COVERS_BODY not in sender.lacks:
            assert body == good.body


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["url_verification", "zen:event-type:x", "2026-01-01", "9" * 300, 10**300]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            [
                "id", "type", "event", "event_id", "events", "eventId", "occurredAt", "created",
                "challenge", "timestamp", "webhookTimestamp", "action", "event-data", "time",
                "created_at", "sg_event_id", "portalId", "delivery_id", "event_type", "x",
            ]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip


@every(ANY_BODY)
@repeatable
@given(value=JSON, indent=st.sampled_from([None, 1]))
def test_any_genuine_json_is_kept(sender: Sender, value: object, indent: int | None) -> None:
    body = json.dumps(value, indent=indent).encode()
    outcome = verify(sender, sign(sender, body))
    if isinstance(outcome, Refused):  # a time in the body that is not of today
        assert outcome.reason in (Reason.TOO_OLD, Reason.IN_THE_FUTURE)
        return
    for item in outcome.items:
        assert 0 < len(item.event_id) <= 255
        assert item.event_id.isprintable()
        assert item.body in body
    if outcome.challenge is not None:
        assert outcome.items == ()
        assert outcome.challenge.isprintable()


@every()
def test_facts(sender: Sender) -> None:
    facts = sender.provider.facts
    assert facts.docs.startswith("https://")
    assert date(2026, 1, 1) <= facts.checked <= date.today()
    assert facts.event_id is not None
    assert facts.event_id.header or facts.event_id.body
    retries = facts.retries
    if retries.delays:
        assert retries.count == len(retries.delays)
        assert retries.span == sum(retries.delays)
        assert all(earlier <= later for earlier, later in pairwise(retries.delays))
    assert facts.retries_at_all == (retries.count != 0)
    oldest = facts.tolerance.max_age
    if oldest is not None and not retries.signed_anew:
        assert oldest > (retries.span or 0), "a genuine late retry would be refused"
