"""
What every sender can rely on, over HTTP: a real gunicorn, and the bytes in the store.

The senders are those of ``tests/sender_cases.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gunicorn_admission.webhooks.store import Store
from tests.intake_calls import path_of, rows
from tests.integration.server import Gunicorn
from tests.integration.wire import Response
from tests.sender_cases import COVERS_BODY, SENDERS, Sender
from tests.senders import AT, Sent, rsa_pair

pytestmark = pytest.mark.integration

each = pytest.mark.parametrize("sender", SENDERS, ids=[one.name for one in SENDERS])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gunicorn, Store]]:
    directory: Path = tmp_path_factory.mktemp("intake")
    (directory / "paypal.pem").write_bytes(rsa_pair()[1])
    url = f"sqlite:///{directory}/webhooks.db"
    with Store(url) as store:
        store.upgrade()
        server = Gunicorn(
            "--threads=4",
            directory=directory,
            app="tests.integration.apps_webhooks:application",
            env={"TEST_STORE_URL": url, "TEST_CLOCK": "fixed"},
        )
        with server:
            server.get("/healthz", timeout=60)  # it imports much at its start
            yield server, store


def send(server: Gunicorn, sender: Sender, sent: Sent) -> Response:
    path = path_of(sender.name, sent)
    return server.get(path, method="POST", headers=sent.headers, body=sent.body)


@each
def test_event_is_stored_once_and_byte_identical(
    served: tuple[Gunicorn, Store], sender: Sender
) -> None:
    server, store = served
    sent = sender.sign(sender.body, sender.keys[0].private, AT)
    first = send(server, sender, sent)
    assert (first.status, first.json()) == (200, {"result": "stored"})
    again = send(server, sender, sent)
    assert (again.status, again.json()) == (200, {"result": "duplicate"})
    kept = rows(store, sender.name)
    assert sorted(row.event_id for row in kept) == sorted(sender.event_ids)
    assert all(row.body in sent.body for row in kept)
    if len(kept) == 1 and b"events" not in sent.body and not sent.body.startswith(b"["):
        assert kept[0].body == sent.body
    assert [row.duplicates for row in kept] == [1] * len(kept)
    assert [row.conflicts for row in kept] == [0] * len(kept)
    assert {row.key_id for row in kept} == {"key-1"}
    names = {name.lower() for name, _ in kept[0].headers}
    assert names >= {name.lower() for name in sender.signed} - {"x-gitlab-token"}
    assert "x-gitlab-token" not in names


@each
def test_what_is_not_genuine_is_401_and_changes_nothing(
    served: tuple[Gunicorn, Store], sender: Sender
) -> None:
    server, store = served
    before = [tuple(row) for row in rows(store, sender.name)]
    sent = sender.sign(sender.body, sender.keys[0].private, AT)
    bare = sent._replace(headers={"Content-Type": "application/json"})
    if sender.signed:
        assert send(server, sender, bare).status == 401
    if COVERS_BODY not in sender.lacks:
        assert send(server, sender, sent._replace(body=sent.body + b" ")).status == 401
    refused = send(server, sender, sent._replace(body=b"{}", headers={}))
    assert refused.status == 401
    assert refused.headers["www-authenticate"]
    assert [tuple(row) for row in rows(store, sender.name)] == before
