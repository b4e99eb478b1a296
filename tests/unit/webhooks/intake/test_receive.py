"""The answers: who is to blame, what is stored, what is counted."""

from __future__ import annotations

import io
import logging
import socket
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from gunicorn_admission.core.types import Priority
from gunicorn_admission.settings import Settings
from gunicorn_admission.settings.check import form_classes
from gunicorn_admission.webhooks.intake import Intake, Key, Source
from gunicorn_admission.webhooks.intake.answer import Result
from gunicorn_admission.webhooks.metrics import Metrics
from gunicorn_admission.webhooks.providers import IdSource, Item, Verified
from gunicorn_admission.webhooks.store import Store, schema
from gunicorn_admission.webhooks.store.errors import StoreError, StoreTimeout
from tests import senders
from tests.intake_calls import SECRET, counted, environ_of, github_sent, post, rows
from tests.senders import AT, WHSEC, to_json

Make = Callable[..., Intake]

SLACK = Source("chat", provider="slack", secrets=["8f742231b10e8888abcd99yyyzzz85a5"])


class Broken:
    """A store that fails as it is told to, and notes the time it was given."""

    def __init__(self, store: Store, error: Exception) -> None:
        self._store, self._error = store, error
        self.timeouts: list[float | None] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, work: object, *, timeout: float | None = None) -> NoReturn:
        self.timeouts.append(timeout)
        raise self._error


@pytest.mark.parametrize("name", ["nothing", "GIT", "", "a/b", "git/", "..", "\x00", "é" * 200])
def test_unknown_source(make: Make, metrics: Metrics, name: str) -> None:
    answer = post(make(), name, github_sent(b"{}", "d-1"))
    assert answer.status == 404
    assert counted(metrics) == {("(unknown)", "unknown"): 1}


def test_other_paths_and_health(make: Make) -> None:
    app = make()
    assert post(app, "git", github_sent(b"{}", "d"), PATH_INFO="/git").status == 404
    assert post(app, "git", github_sent(b"{}", "d"), PATH_INFO="").status == 404
    assert post(app, "x", github_sent(b"", "d"), PATH_INFO="/healthz").status == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_only_post(make: Make, method: str) -> None:
    answer = post(make(), "git", github_sent(b"{}", "d-1"), REQUEST_METHOD=method)
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"


def test_disabled_is_for_now(make: Make, store: Store) -> None:
    app = make(Source("git", provider="github", secrets=[SECRET], enabled=False))
    answer = post(app, "git", github_sent(b"{}", "d-1"))
    assert answer.status == 503
    assert rows(store) == []


def test_too_large_is_told_apart_and_logged(
    make: Make, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    app = make(Source("git", provider="github", secrets=[SECRET], max_body=10))
    stream = io.BytesIO(b"x" * 11)
    answer = post(app, "git", github_sent(b"x" * 11, "d-1"), **{"wsgi.input": stream})
    assert answer.status == 413
    assert counted(metrics) == {("git", "too_large"): 1}
    assert "max_body" in caplog.text


def test_incomplete_names_the_usual_cause(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    sent = github_sent(b"{}", "d-1")
    answer = post(make(), "git", sent, **{"wsgi.input": io.BytesIO(b"")})
    assert answer.status == 503
    assert "did something in front of the intake read the body?" in caplog.text


def test_wrong_signature(
    make: Make, store: Store, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    sent = github_sent(b'{"private": "text"}', "d-1", "another secret")
    answer = post(make(), "git", sent)
    assert answer.status == 401
    assert answer.headers["www-authenticate"]
    assert b"wrong_signature" not in answer.body  # a stranger learns nothing
    assert counted(metrics, "verify_failures") == {("git", "wrong_signature"): 1}
    assert rows(store) == []
    assert "wrong_signature" in caplog.text
    for hidden in (SECRET, "private", sent.headers["X-Hub-Signature-256"]):
        assert hidden not in caplog.text


def test_what_only_we_can_put_right_is_503(
    make: Make, monkeypatch: pytest.MonkeyPatch, metrics: Metrics
) -> None:
    monkeypatch.setenv("LATE_SECRET", "x")
    ended = Key(key_id="a", value=SECRET, not_after=AT - 1)
    app = make(
        Source("square", provider="square", secrets=["signature-key"]),  # no URL
        Source("ended", provider="github", secrets=[ended]),
        Source("lost", provider="github", secrets=["env:LATE_SECRET", "another"]),
        refresh=0,
    )
    monkeypatch.delenv("LATE_SECRET")
    sent = github_sent(b"{}", "d-1")
    square = senders.square(b"{}", "signature-key", AT)
    assert post(app, "square", square._replace(url="")).status == 503
    assert post(app, "ended", sent).status == 503
    assert post(app, "lost", sent).status == 503
    assert post(app, "lost", github_sent(b"{}", "d-1", "another")).status == 200
    assert post(app, "lost", sent._replace(headers={})).status == 401  # no secret would help
    reasons = set(counted(metrics, "verify_failures"))
    assert ("square", "url_missing") in reasons
    assert ("ended", "no_active_secret") in reasons


def test_challenge_only_after_verification(make: Make, store: Store, metrics: Metrics) -> None:
    app = make(SLACK)
    body = to_json({"type": "url_verification", "challenge": "<b>3eZbrw1a</b>"})
    good = senders.slack(body, SLACK.secrets[0].value, AT)
    answer = post(app, "chat", good)
    assert (answer.status, answer.body) == (200, b"<b>3eZbrw1a</b>")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    forged = post(app, "chat", senders.slack(body, "another secret", AT))
    assert forged.status == 401
    assert b"3eZbrw1a" not in forged.body
    assert rows(store) == []
    assert counted(metrics) == {("chat", "challenge"): 1, ("chat", "refused"): 1}


def test_empty_batch(make: Make, store: Store) -> None:
    kit = Source("kit", provider="kit", secrets=["kit-secret"])
    sent = senders.kit(to_json({"delivery_id": "9", "events": []}), "kit-secret", AT)
    assert post(make(kit), "kit", sent).json() == {"result": "empty"}
    assert rows(store) == []


def test_store_that_is_late_or_down(
    make: Make, store: Store, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    sent = github_sent(b'{"private": "text"}', "d-1")
    for error, result in (
        (StoreTimeout("not committed within 8.5 s"), Result.LATE),
        (StoreError("the disk is full"), Result.UNAVAILABLE),
        (RuntimeError("private text"), Result.ERROR),
    ):
        broken = Broken(store, error)
        answer = post(make(store=broken), "git", sent)
        assert answer.status == 503
        assert answer.headers["retry-after"] == "10"
        assert counted(metrics)[("git", result.value)] == 1
        assert broken.timeouts == [pytest.approx(9.0, abs=0.5)]  # 10 s less the way back
    assert "the disk is full" in caplog.text
    assert "private" not in caplog.text


def test_time_in_the_queue_counts_towards_the_deadline(make: Make, store: Store) -> None:
    broken = Broken(store, StoreTimeout("late"))
    app, sent = make(store=broken), github_sent(b"{}", "d-1")
    post(app, "git", sent, **{"gunicorn_admission.queue_delay": 4.0})
    assert broken.timeouts == [pytest.approx(5.0, abs=0.5)]
    answer = post(app, "git", sent, **{"gunicorn_admission.queue_delay": 9.5})
    assert (answer.status, len(broken.timeouts)) == (503, 1)  # not even tried


@pytest.mark.parametrize("chance", [0.0, 0.3, 0.999])
def test_retry_after_is_jittered(make: Make, store: Store, chance: float) -> None:
    broken = Broken(store, StoreError("down"))
    answer = post(make(store=broken, chance=lambda: chance), "git", github_sent(b"{}", "d"))
    assert 5 <= int(answer.headers["retry-after"]) <= 15
    assert int(answer.headers["retry-after"]) == {0.0: 5, 0.3: 8, 0.999: 15}[chance]


def test_old_key_is_counted_and_said(
    make: Make, metrics: Metrics, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    keys = [Key(key_id="new", value="new"), Key(key_id="old", value=SECRET, not_after=AT + 7200)]
    app = make(Source("git", provider="github", secrets=keys))
    assert post(app, "git", github_sent(b"{}", "d-1", "new")).status == 200
    assert counted(metrics, "secret_old_key_used") == {}
    assert post(app, "git", github_sent(b"{}", "d-2")).status == 200
    assert counted(metrics, "secret_old_key_used") == {("git",): 1}
    assert "old secret 'old', which ends in 2.0 h" in caplog.text
    assert [row.key_id for row in rows(store)] == ["new", "old"]


def test_clock_skew(make: Make, metrics: Metrics) -> None:
    svix = Source("svix", provider="standard_webhooks", secrets=[WHSEC[0].secret])
    sign, key = senders.standard("svix"), WHSEC[0].private
    app = make(svix, Source("git", provider="github", secrets=[SECRET]))
    post(app, "svix", sign(b"{}", key, AT - 12))
    assert metrics.measured().gauges == {("clock_skew", ("svix",)): 12.0}
    post(app, "svix", sign(b"{}", key, AT + 4000))
    assert metrics.measured().gauges == {("clock_skew", ("svix",)): -4000.0}
    assert counted(metrics, "verify_failures") == {("svix", "in_the_future"): 1}


def test_log_is_bounded(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    app = make()
    for n in range(50):
        post(app, "git", github_sent(b"%d" % n, "d", "wrong"))
    assert caplog.text.count("wrong_signature") == 1


def test_a_bug_of_ours_is_an_honest_503(
    make: Make, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make()
    app.receiver.sources.find("git")

    def fail(*_: object) -> NoReturn:
        raise ZeroDivisionError

    monkeypatch.setattr("gunicorn_admission.webhooks.intake.receive.traceparent_of", fail)
    assert post(app, "git", github_sent(b"{}", "d-1")).status == 503
    assert counted(metrics) == {("git", "error"): 1}


class Ticket:
    def __init__(self) -> None:
        self.priority = Priority.DEFAULT
        self.partition = self
        self.name = "hooks/git"


class Gate:
    """What admission leaves in the environ."""

    def __init__(self) -> None:
        self.ticket = Ticket()
        self.limiter = self

    def reclassify(self, ticket: Ticket, name: str, priority: Priority) -> None:
        ticket.priority = priority


def promoted(make: Make, to: Priority | None, secret: str = SECRET) -> tuple[Priority, str]:
    gate = Gate()
    environ: dict[str, Any] = {
        "gunicorn_admission.gate": gate,
        "gunicorn_admission.token": gate,
        "gunicorn_admission.priority": "default",
    }
    source = Source("git", provider="github", secrets=[SECRET], promote=lambda _: to)
    sent = github_sent(b"{}", "d-1", secret)
    whole = environ_of("git", sent.body, sent.headers, **environ)
    make(source)(whole, lambda *_: None)
    return gate.ticket.priority, whole["gunicorn_admission.priority"]


def test_priority_is_raised_after_verification_and_only_raised(make: Make) -> None:
    assert promoted(make, Priority.HIGH) == (Priority.HIGH, "high")
    assert promoted(make, Priority.HIGH, "forged") == (Priority.DEFAULT, "default")
    assert promoted(make, Priority.LOW) == (Priority.DEFAULT, "default")
    assert promoted(make, None) == (Priority.DEFAULT, "default")


def test_rules_for_admission(make: Make) -> None:
    app = make(
        Source("git", provider="github", secrets=[SECRET], priority="high"),
        Source("chat", provider="slack", secrets=["x" * 32], deadline="2s"),
        prefix="/in/",
    )
    rules = {rule.pattern.text: rule for rule in app.receiver.rules()}
    assert set(rules) == {"=/in/git", "=/in/chat"}
    git, chat = rules["=/in/git"], rules["=/in/chat"]
    assert (git.priority, git.deadline, git.retries) == (Priority.HIGH, 10.0, False)
    assert (chat.priority, chat.deadline, chat.retries) == (Priority.DEFAULT, 2.0, True)
    assert git.name == "hooks/git"
    assert git.max_refusals is None


def test_a_subscription_that_can_be_lost_goes_first_in_time(make: Make) -> None:
    app = make(Source("shop", provider="shopify", secrets=["x"]))
    (rule,) = app.receiver.rules()
    assert rule.max_refusals == 4  # Shopify deletes it after 8 failures in a row
    settings = Settings()
    assert form_classes(settings, [rule])["hooks/shop"].max_refusals == 4


def test_work_for_a_wrong_signature_is_that_of_a_right_one(make: Make) -> None:
    """
    Up to the verdict the same steps run; the verdict itself takes the same time by the
    contract of the providers (tests/contract/test_providers.py).
    """
    steps: list[str] = []

    class Noted:
        facts = Source("git", provider="github", secrets=["x"]).provider.facts

        def verify(self, body: bytes, *_: object) -> Verified:
            steps.append(f"verify {len(body)}")
            item = Item(
                event_id="e", id_source=IdSource.HEADER, event_type=None, timestamp=None, body=body
            )
            return Verified(event_id="e", event_type=None, timestamp=None, secret=0, items=(item,))

        def check_secret(self, _: object) -> None:
            steps.append("check")

    app = make(Source("git", provider=Noted(), secrets=[SECRET]))
    app.receiver.sources.find("git")
    for secret in (SECRET, "wrong"):
        steps.clear()
        post(app, "git", github_sent(b"{}", "d-1", secret))
        assert steps == ["verify 2"]


def test_store_that_was_never_reached(make: Make, tmp_path: Any, metrics: Metrics) -> None:
    with Store(f"sqlite:///{tmp_path}/none.db") as missing:
        app = make(store=missing)
        assert post(app, "other", github_sent(b"{}", "d")).status == 503  # it may be in the store
        assert post(app, "git", github_sent(b"{}", "d")).status == 503
    assert counted(metrics) == {("(unknown)", "unavailable"): 1, ("git", "unavailable"): 1}


def test_nothing_but_the_tables_of_intake_is_written(make: Make, store: Store) -> None:
    post(make(), "git", github_sent(b"{}", "d-1"))
    with store.read() as connection:
        for table in (schema.deliveries, schema.nonces, schema.audit):
            assert connection.execute(table.select()).all() == []


def test_database_that_does_not_answer(make: Make, metrics: Metrics) -> None:
    """It takes connections and says nothing, as behind a firewall that drops packets."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
        with Store(url) as store:
            answer = post(make(store=store), "git", github_sent(b"{}", "d-1"))
    assert answer.status == 503
    assert counted(metrics) == {("git", "unavailable"): 1}
