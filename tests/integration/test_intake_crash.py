"""
What was answered 2xx is in the store: many clients at once, and processes killed under load.

Both on SQLite and on PostgreSQL, with several gunicorn processes.
"""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL

import pytest

from gunicorn_admission.webhooks.store import Store
from tests.intake_calls import github_sent, rows
from tests.integration import processes
from tests.integration.server import Gunicorn
from tests.integration.wire import Response
from tests.senders import Sent

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

THREADS = 12
#: Workers import much at their start, which takes long on a busy machine; only failures pay it.
PATIENCE = 60.0


def gunicorn(directory: Path, url: str) -> Gunicorn:
    return Gunicorn(
        "--workers=2",
        "--threads=6",
        directory=directory,
        app="tests.integration.apps_webhooks:application",
        env={"TEST_STORE_URL": url},
    )


def take(server: Gunicorn, sent: Sent) -> Response:
    headers, body = sent.headers, sent.body
    return server.get("/hooks/load", method="POST", headers=headers, body=body, timeout=PATIENCE)


@contextmanager
def clients(work: Callable[[int], None]) -> Iterator[None]:
    """Run ``work`` in threads; they must have ended when the block is left."""
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert not errors, errors


def test_one_delivery_from_all_sides_is_one_event(tmp_path: Path, any_store_url: str) -> None:
    rounds = 4
    answers: dict[int, Counter[str]] = {number: Counter() for number in range(rounds)}
    barrier = threading.Barrier(THREADS, timeout=PATIENCE)

    with gunicorn(tmp_path, any_store_url) as server:
        server.wait_workers(lambda pids: len(pids) == 2)

        def post(client: int) -> None:
            for number in range(rounds):
                sent = github_sent(b'{"n": %d}' % number, f"same-{number}")
                barrier.wait()
                answer = take(server, sent)
                assert answer.status == 200, answer.text
                answers[number][answer.json()["result"]] += 1

        with clients(post):
            pass
    with Store(any_store_url) as store:
        kept = rows(store)
    assert [row.event_id for row in kept] == [f"same-{number}" for number in range(rounds)]
    assert [row.duplicates for row in kept] == [THREADS - 1] * rounds
    assert [row.conflicts for row in kept] == [0] * rounds
    expected = Counter(stored=1, duplicate=THREADS - 1)
    assert list(answers.values()) == [expected] * rounds


def test_kill_9_loses_nothing_that_was_answered(tmp_path: Path, any_store_url: str) -> None:
    acknowledged: dict[str, bytes] = {}
    enough = {count: threading.Event() for count in (25, 60)}
    over = threading.Event()

    def post(client: int) -> None:
        number = 0
        while not over.is_set():
            number += 1
            body = f'{{"client": {client}, "n": {number}, "text": "🎉"}}'.encode()
            sent = github_sent(body, f"{client}-{number}")
            try:
                answer = take(server, sent)
            except (OSError, http.client.HTTPException):
                continue  # killed: nothing was promised
            assert answer.status in (200, 503)
            if answer.status == 200:
                acknowledged[f"{client}-{number}"] = body
            for count, event in enough.items():
                if len(acknowledged) >= count:
                    event.set()

    with gunicorn(tmp_path, any_store_url) as server, clients(post):
        try:
            for count, event in enough.items():
                assert event.wait(PATIENCE), f"{len(acknowledged)} of {count} events were taken"
                for worker in server.workers()[:2]:
                    server.signal(SIGKILL, worker)
        finally:
            processes.kill_group(server.pid)
            over.set()
    with Store(any_store_url) as store:
        kept = {row.event_id: row.body for row in rows(store)}
    assert len(acknowledged) >= 60
    assert {event_id: kept.get(event_id) for event_id in acknowledged} == acknowledged
