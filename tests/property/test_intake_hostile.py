"""Hostile requests to every source: no exception, no unbounded read, always an answer."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gunicorn_admission.webhooks.intake import Intake, Source
from gunicorn_admission.webhooks.metrics import Metrics
from gunicorn_admission.webhooks.store import Store
from tests.intake_calls import environ_of, rows
from tests.sender_cases import ANY_BODY, COVERS_BODY, SENDERS, Sender
from tests.senders import AT, URL

LARGEST = 4096
METRICS = Metrics()
REFUSALS = {401, 404, 405, 413, 503}

each = pytest.mark.parametrize("sender", SENDERS, ids=[one.name for one in SENDERS])


class Input:
    """``wsgi.input`` that gives pieces as it likes, may break, and counts."""

    def __init__(self, data: bytes, pieces: random.Random, breaks: bool) -> None:
        self._data, self._pieces, self._breaks = data, pieces, breaks
        self.taken = 0

    def read(self, size: int) -> bytes:
        assert size >= 0, "an unbounded read"
        if self._breaks and self._pieces.random() < 0.3:
            raise OSError
        piece = self._data[self.taken : self.taken + self._pieces.randint(0, max(0, size))]
        self.taken += len(piece)
        return piece


@pytest.fixture(scope="module")
def intake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Intake, Store]]:
    path: Path = tmp_path_factory.mktemp("hostile") / "webhooks.db"
    with Store(f"sqlite:///{path}") as store:
        store.upgrade()
        sources = [
            Source(
                sender.name,
                provider=sender.provider,
                secrets=[key.secret for key in sender.keys],
                url=URL,
                max_body=LARGEST,
            )
            for sender in SENDERS
        ]
        yield Intake(store, sources, clock=lambda: AT, metrics=METRICS), store


def ask(intake: Intake, environ: dict[str, Any]) -> int:
    begun: list[str] = []
    body = b"".join(intake(environ, lambda status, _: begun.append(status)))
    assert body or environ["REQUEST_METHOD"] == "HEAD"
    counted = METRICS.measured().counters
    errors = [labels for (key, labels) in counted if key == "intake_requests" and "error" in labels]
    assert not errors, "an exception was caught"
    return int(begun[0].split()[0])


NAMES = st.sampled_from([sender.name for sender in SENDERS]) | st.text(max_size=20)
VALUES = st.text(max_size=80) | st.sampled_from(["", "sha256=00", "t=1,v1=0", "v1,A", "\x00", "ÿ"])
LENGTHS = st.none() | st.integers(-1, 9000).map(str) | st.text(max_size=6) | st.just("9" * 40)


@settings(
    deadline=None,
    derandomize=True,
    max_examples=250,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_any_request_has_an_answer(intake: tuple[Intake, Store], data: st.DataObject) -> None:
    app, _ = intake
    signed = [name for sender in SENDERS for name in sender.signed]
    name = data.draw(NAMES)
    headers = data.draw(st.dictionaries(st.sampled_from(signed), VALUES, max_size=6))
    body = data.draw(st.binary(max_size=LARGEST * 2))
    stream = Input(body, random.Random(data.draw(st.integers(0, 99))), data.draw(st.booleans()))
    environ = environ_of(
        name,
        body,
        headers,
        data.draw(st.text(max_size=20)),
        REQUEST_METHOD=data.draw(st.sampled_from(["POST", "POST", "POST", "GET", "", "é"])),
        CONTENT_LENGTH=data.draw(LENGTHS),
        HTTP_TRANSFER_ENCODING=data.draw(st.sampled_from([None, "chunked", "gzip"])),
    )
    environ["wsgi.input"] = stream
    environ["wsgi.input_terminated"] = data.draw(st.booleans())
    assert ask(app, environ) in REFUSALS
    assert stream.taken <= max(2 * LARGEST + 1, 65536)


@each
def test_damaged_requests_of_each_sender(intake: tuple[Intake, Store], sender: Sender) -> None:
    app, store = intake
    chance = random.Random(sender.name)
    good = sender.sign(sender.body, sender.keys[0].private, AT)

    def damaged(text: str) -> str:
        start, end = sorted(chance.choices(range(len(text) + 1), k=2))
        return text[:start] + chance.choice(["", "=", ",", " ", "\x00", "é", "9" * 20]) + text[end:]

    before = {row.event_id: row.body for row in rows(store, sender.name)}
    for _ in range(60):
        headers = {
            name: damaged(value) if chance.random() < 0.4 else value
            for name, value in good.headers.items()
            if chance.random() < 0.9
        }
        body = good.body if chance.random() < 0.6 else damaged(good.body.decode()).encode()
        changed = (headers, body) != (good.headers, good.body)
        status = ask(app, environ_of(sender.name, body, headers, urlsplit(good.url).query))
        assert status in REFUSALS | {200}
        if status == 200 and changed and COVERS_BODY not in sender.lacks:
            assert body == good.body  # only a header that is not signed differed
    kept = {row.event_id: row.body for row in rows(store, sender.name)}
    if COVERS_BODY not in sender.lacks:
        assert all(body in good.body for i, body in kept.items() if i not in before)
    assert before.items() <= kept.items()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(["2026-01-01", "9999-12-31T23:59:59Z", "9" * 300]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            [
                "id", "type", "event", "event_id", "events", "eventId", "occurredAt", "created",
                "timestamp", "webhookTimestamp", "event-data", "time", "created_at",
                "sg_event_id", "delivery_id", "event_type", "x",
            ]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.parametrize(
    "sender", [s for s in SENDERS if ANY_BODY not in s.lacks], ids=lambda sender: sender.name
)
@settings(
    deadline=None,
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(value=JSON)
def test_any_genuine_event_is_taken(
    intake: tuple[Intake, Store], sender: Sender, value: object
) -> None:
    """Whatever it holds: an event that cannot be stored would be sent again and again."""
    app, _ = intake
    sent = sender.sign(json.dumps(value).encode(), sender.keys[0].private, AT)
    environ = environ_of(sender.name, sent.body, sent.headers, urlsplit(sent.url).query)
    status = ask(app, environ)
    # Linear's time is in the body; what PayPal signs in place of a body is good once.
    assert status == 200 or (sender.name in ("linear", "paypal") and status == 401)
