"""The one transaction of a request, on both databases: once, whole batches, first bytes win."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from gunicorn_admission.webhooks.intake import Intake, Source
from gunicorn_admission.webhooks.metrics import Metrics
from gunicorn_admission.webhooks.store import Store, schema
from tests import senders
from tests.intake_calls import SECRET, counted, github_sent, post, rows
from tests.senders import AT, ecdsa_keys, to_json

Make = Callable[..., Intake]


@pytest.fixture
def store(any_store: Store) -> Store:
    return any_store


def test_stored_then_duplicate(make: Make, store: Store, metrics: Metrics) -> None:
    app, sent = make(), github_sent(b'{"a": 1}', "d-1")
    first, again = post(app, "git", sent), post(app, "git", sent)
    assert (first.status, first.json()) == (200, {"result": "stored"})
    assert (again.status, again.json()) == (200, {"result": "duplicate"})
    assert first.headers["cache-control"] == "no-store"
    (row,) = rows(store)
    assert (row.source, row.event_id, row.type, row.body) == ("git", "d-1", "push", b'{"a": 1}')
    assert (row.duplicates, row.conflicts, row.key_id) == (1, 0, "key-1")
    assert row.received_at == round(AT * 1e6)
    assert counted(metrics) == {("git", "stored"): 1, ("git", "duplicate"): 1}
    assert counted(metrics, "intake_events") == {("git",): 1}
    assert counted(metrics, "intake_duplicates") == {("git",): 1}


def test_same_id_with_other_bytes_is_a_conflict_and_the_first_wins(
    make: Make, store: Store, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    app = make()
    post(app, "git", github_sent(b"first", "d-1"))
    other = post(app, "git", github_sent(b"other", "d-1"))
    assert (other.status, other.json()) == (200, {"result": "duplicate"})
    (row,) = rows(store)
    assert (row.body, row.duplicates, row.conflicts) == (b"first", 0, 1)
    assert counted(metrics, "id_conflicts") == {("git",): 1}
    assert "came again with other bytes" in caplog.text
    assert "other" not in caplog.text.replace("other bytes", "")


KIT = Source("kit", provider="kit", secrets=["kit-secret"])


def kit(*ids: str, text: str = "") -> senders.Sent:
    events = [{"id": one, "type": "a", "text": text} for one in ids]
    return senders.kit(to_json({"delivery_id": "9", "events": events}), "kit-secret", AT)


def test_batch_is_split(make: Make, store: Store, metrics: Metrics) -> None:
    app = make(KIT)
    assert post(app, "kit", kit("b", "a", "b")).json() == {"result": "stored"}
    kept = {row.event_id: row for row in rows(store)}
    assert set(kept) == {"a", "b"}
    assert kept["a"].body == b'{"id": "a", "type": "a", "text": ""}'
    assert {row.delivery_id for row in kept.values()} == {"9"}
    assert (kept["a"].duplicates, kept["b"].duplicates) == (0, 1)
    assert post(app, "kit", kit("b", "c")).json() == {"result": "stored"}
    assert post(app, "kit", kit("a", "b", "c", text="other")).json() == {"result": "duplicate"}
    kept = {row.event_id: row for row in rows(store)}
    assert [(kept[i].duplicates, kept[i].conflicts) for i in "abc"] == [(0, 1), (2, 1), (0, 1)]
    assert counted(metrics, "intake_events") == {("kit",): 3}


def test_large_batch(make: Make, store: Store) -> None:
    app, ids = make(KIT), [f"e{n:04}" for n in range(1200)]
    assert post(app, "kit", kit(*ids)).status == 200
    assert post(app, "kit", kit(*ids)).json() == {"result": "duplicate"}
    kept = rows(store)
    assert [row.event_id for row in kept] == ids
    assert {row.duplicates for row in kept} == {1}


MAILGUN = Source("mail", provider="mailgun", secrets=["key-1"])


def test_nonce_is_good_once(make: Make, store: Store, metrics: Metrics) -> None:
    app = make(MAILGUN)

    def mail(event_id: str) -> senders.Sent:
        body = to_json({"event-data": {"id": event_id, "event": "opened"}})
        return senders.mailgun(body, "key-1", AT)  # the same token each time

    assert post(app, "mail", mail("m-1")).json() == {"result": "stored"}
    assert post(app, "mail", mail("m-1")).json() == {"result": "duplicate"}
    assert post(app, "mail", mail("m-2")).status == 401
    assert [row.event_id for row in rows(store)] == ["m-1"]
    assert counted(metrics, "verify_failures") == {("mail", "nonce_reused"): 1}


def test_what_is_kept_of_the_headers(make: Make, store: Store) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    sent = github_sent(b"{}", "d-1")
    headers = {
        **sent.headers,
        "Authorization": "Bearer 1",
        "Cookie": "a=2",
        "X-Api-Key": "3",
        "Traceparent": trace,
        "Content-Type": "application/json",
        "X-Long": "y" * 5000,
        "X-Nul": "a\x00b",
    }
    assert post(make(), "git", sent._replace(headers=headers)).status == 200
    (row,) = rows(store)
    kept = dict(row.headers)
    assert kept["X-Hub-Signature-256"] == sent.headers["X-Hub-Signature-256"]
    assert kept["X-Nul"] == "ab"
    assert not {"Authorization", "Cookie", "X-Api-Key", "X-Long"} & set(kept)
    assert (row.traceparent, row.content_type) == (trace, "application/json")


def test_a_router_sees_new_events_only_and_its_error_keeps_nothing(
    make: Make, store: Store
) -> None:
    seen: list[list[str]] = []

    class Router:
        fails = False

        def route(self, connection: object, events: Any) -> None:
            seen.append([event.event_id for event in events])
            if self.fails:
                raise RuntimeError

    router = Router()
    app = make(KIT, router=router)
    post(app, "kit", kit("a", "b"))
    post(app, "kit", kit("b", "c"))
    post(app, "kit", kit("a"))
    assert seen == [["a", "b"], ["c"]]
    router.fails = True
    assert post(app, "kit", kit("d")).status == 503
    router.fails = False
    assert post(app, "kit", kit("d")).json() == {"result": "stored"}
    assert [row.event_id for row in rows(store)] == ["a", "b", "c", "d"]


def test_not_committed_by_the_deadline_is_503_and_the_retry_is_taken(
    make: Make, store: Store, any_store_url: str, metrics: Metrics
) -> None:
    """Somebody else is about to write the very same event, and takes too long."""
    app = make(Source("git", provider="github", secrets=[SECRET], deadline=0.5))
    sent = github_sent(b"{}", "d-1")
    post(app, "git", github_sent(b"{}", "d-0"))
    (row,) = rows(store)
    same = {**row._asdict(), "event_id": "d-1"}
    del same["seq"]

    class GivesUp(Exception): ...

    with Store(any_store_url) as other, suppress(GivesUp), other.transaction() as connection:
        connection.execute(schema.events.insert().values(same))
        answer = post(app, "git", sent)
        raise GivesUp
    assert answer.status == 503
    assert answer.headers["retry-after"]
    assert counted(metrics)["git", "late"] == 1
    assert post(app, "git", sent).status == 200
    assert [row.event_id for row in rows(store)] == ["d-0", "d-1"]


@pytest.mark.parametrize("time", [0, 1, 1_790_000_000, 253_402_300_799, 253_402_300_800, 10**14])
def test_any_time_and_text_a_sender_may_send_can_be_stored(
    make: Make, store: Store, time: int
) -> None:
    key, private = ecdsa_keys()[0]
    app = make(Source("mail", provider="sendgrid", secrets=[key]))
    body = to_json(
        [{"sg_event_id": "e", "timestamp": time, "event": "\x00\ud800" if time else "a"}]
    )
    sent = senders.sendgrid(body, private, AT)
    odd = {"CONTENT_TYPE": "a\x00b\ud800", "HTTP_X_ODD": "\x00\ud800\xff"}
    assert post(app, "mail", sent, **odd).json() == {"result": "stored"}
    (row,) = rows(store)
    assert row.source_time == (time * 10**6 if time < 253_402_300_800 else None)
    assert row.content_type == "ab?"
    assert ["X-Odd", "?\xff"] in row.headers
