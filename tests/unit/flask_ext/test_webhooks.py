"""Webhooks in Flask: the raw body, whatever touched the request before."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask, current_app, request, request_started
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from flask_ext import Admission, Webhooks
from gunicorn_admission.core.types import Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.intake import Source
from gunicorn_admission.webhooks.store import Store
from tests.intake_calls import SECRET, github_sent, rows
from tests.senders import Sent

FORM = b"payload=%7B%22text%22%3A%2210+%E2%82%AC%22%7D&again=1"
JSON = '{"text": "10 €, 🎉"}'.encode()
FORM_TYPE, JSON_TYPE = "application/x-www-form-urlencoded", "application/json"
GIT = Source("git", provider="github", secrets=[SECRET], priority="high", max_body=1000)


@pytest.fixture
def store(sqlite_store_url: str) -> Any:
    with Store(sqlite_store_url) as opened:
        yield opened


@pytest.fixture
def app(store: Store) -> Flask:
    made = Flask("hooked")
    Webhooks(made, store=store, sources=[GIT])
    return made


def post(app: Flask, sent: Sent, content_type: str = JSON_TYPE, **options: Any) -> TestResponse:
    client: FlaskClient = app.test_client()
    headers = {**sent.headers, "Content-Type": content_type}
    return client.post("/hooks/git", data=sent.body, headers=headers, **options)


@pytest.mark.parametrize(("body", "kind"), [(FORM, FORM_TYPE), (JSON, JSON_TYPE), (b"", JSON_TYPE)])
def test_stored_byte_identical(app: Flask, store: Store, body: bytes, kind: str) -> None:
    sent = github_sent(body, "d-1")
    first = post(app, sent, kind)
    assert (first.status_code, first.json) == (200, {"result": "stored"})
    assert first.headers["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in first.headers
    assert post(app, sent, kind).json == {"result": "duplicate"}
    assert [(row.event_id, row.body, row.content_type) for row in rows(store)] == [
        ("d-1", body, kind)
    ]


TOUCHES: dict[str, Callable[[], object]] = {
    "form": lambda: request.form,
    "values": lambda: request.values,
    "data": lambda: request.data,
    "get_data": lambda: request.get_data(),
    "uncached": lambda: request.get_data(cache=False),
    "json": lambda: request.get_json(silent=True),
    "files": lambda: request.files,
    "stream": lambda: request.stream.read(),
}


@pytest.mark.parametrize("touch", TOUCHES)
@pytest.mark.parametrize(("body", "kind"), [(FORM, FORM_TYPE), (JSON, JSON_TYPE)])
def test_hooks_of_the_application_may_read_the_request(
    app: Flask, store: Store, touch: str, body: bytes, kind: str
) -> None:
    seen: list[object] = []

    @app.before_request
    def look() -> None:
        seen.append(TOUCHES[touch]())

    assert post(app, github_sent(body, "d-1"), kind).status_code == 200
    assert [row.body for row in rows(store)] == [body]
    assert seen
    if (touch, kind) == ("form", FORM_TYPE):
        assert seen[0]["payload"] == '{"text":"10 €"}'  # type: ignore[index]


@pytest.mark.parametrize("touch", ["get_data", "json", "data"])
def test_what_was_read_before_the_routing_is_there_still(
    app: Flask, store: Store, touch: str
) -> None:
    def early(*_: object, **__: object) -> None:
        TOUCHES[touch]()

    with request_started.connected_to(early, app):
        assert post(app, github_sent(JSON, "d-1")).status_code == 200
    assert [row.body for row in rows(store)] == [JSON]


def test_a_form_that_was_parsed_before_the_routing_is_an_honest_503(
    app: Flask, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def early(*_: object, **__: object) -> None:
        TOUCHES["form"]()

    with request_started.connected_to(early, app):
        answer = post(app, github_sent(FORM, "d-1"), FORM_TYPE)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert "did something in front of the intake read the body?" in caplog.text
    assert rows(store) == []


def test_limits_of_the_application_are_not_those_of_the_source(app: Flask, store: Store) -> None:
    app.config["MAX_CONTENT_LENGTH"] = 5
    assert post(app, github_sent(JSON, "d-1")).status_code == 200
    assert post(app, github_sent(b"x" * 1001, "d-2")).status_code == 413
    assert [row.body for row in rows(store)] == [JSON]


def test_chunked(app: Flask, store: Store) -> None:
    sent = github_sent(JSON, "d-1")
    environ = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    client = app.test_client()
    answer = client.post(
        "/hooks/git",
        input_stream=io.BytesIO(JSON),
        headers=sent.headers,
        content_type=JSON_TYPE,
        environ_overrides=environ,
    )
    assert answer.status_code == 200
    assert [row.body for row in rows(store)] == [JSON]


def test_other_methods_and_sources(app: Flask) -> None:
    client = app.test_client()
    assert client.get("/hooks/git").status_code == 405
    assert client.put("/hooks/git").headers["Allow"] == "POST"
    assert client.head("/hooks/git").data == b""
    assert client.post("/hooks/nothing").status_code == 404
    assert client.post("/hooks/").status_code == 404
    assert client.post("/hooks/git", data=b"x").status_code == 401


def test_other_views_keep_their_body(app: Flask) -> None:
    @app.post("/echo")
    def echo() -> bytes:
        return request.get_data()

    assert app.test_client().post("/echo", data=b"abc").data == b"abc"


def test_prefix_and_configuration(sqlite_store_url: str) -> None:
    app = Flask("hooked")
    app.config["WEBHOOKS_STORE_URL"] = sqlite_store_url
    webhooks = Webhooks(sources=[GIT], url_prefix="/in")
    webhooks.init_app(app, mount="/api")
    sent = github_sent(JSON, "d-1")
    assert app.test_client().post("/in/git", data=JSON, headers=sent.headers).status_code == 200
    intake = app.extensions["webhooks"]
    assert [rule.pattern.text for rule in intake.receiver.rules()] == ["=/api/in/git"]
    intake.receiver.store.close()
    with pytest.raises(ConfigError, match="make one Webhooks"):
        Webhooks(app)


def test_csrf_protection_leaves_it_alone(sqlite_store_url: str) -> None:
    class Protection:
        exempted: object = None

        def exempt(self, blueprint: object) -> None:
            self.exempted = blueprint

    app = Flask("hooked")
    app.extensions["csrf"] = protection = Protection()
    Webhooks(app, store=sqlite_store_url)
    assert protection.exempted is app.blueprints["gunicorn_admission_webhooks"]


def test_admission_knows_class_and_priority_of_a_source(app: Flask, store: Store) -> None:
    seen: list[tuple[str, str]] = []
    Admission(app, threads=8)

    @app.before_request
    def look() -> None:
        names = ("gunicorn_admission.partition", "gunicorn_admission.priority")
        seen.append((request.environ[names[0]], request.environ[names[1]]))

    threaded = {"wsgi.multithread": True}
    assert post(app, github_sent(JSON, "d-1"), environ_overrides=threaded).status_code == 200
    app.test_client().post("/hooks/other", environ_overrides=threaded)
    assert seen == [("hooks/git", "high"), ("/hooks", "default")]


def test_a_verified_partner_may_raise_the_priority(store: Store) -> None:
    app = Flask("hooked")
    seen: list[str] = []

    def promote(verified: Any) -> Priority | None:
        return Priority.HIGH if verified.event_type == "push" else None

    about = {"secrets": [SECRET], "promote": promote, "priority": "default"}
    Webhooks(app, store=store, sources=[Source("git", provider="github", **about)])
    Admission(app, threads=8)

    @app.teardown_request
    def look(_: object) -> None:
        seen.append(request.environ["gunicorn_admission.priority"])

    sent = github_sent(JSON, "d-1")
    threaded = {"wsgi.multithread": True}
    post(app, sent, environ_overrides=threaded)
    post(app, sent._replace(body=b"forged"), environ_overrides=threaded)
    assert seen == ["high", "default"]


def test_consumers_run_in_the_context_of_the_application(sqlite_store_url: str) -> None:
    webhooks = Webhooks(store=sqlite_store_url)
    seen: list[object] = []

    @webhooks.consumer("usage-analytics", concurrency=2)
    def count(event: object) -> str:
        seen.append((event, current_app.name if current_app else None))
        return "done"

    registered = webhooks.consumers["usage-analytics"]
    assert registered.concurrency == 2
    assert registered.handler("before") == "done"
    assert count("direct") == "done"
    assert seen[0] == ("before", None)
    with pytest.raises(ConfigError, match="not taken"):
        webhooks.consumer("usage-analytics")(count)
    with pytest.raises(ConfigError, match="plain function"):

        @webhooks.consumer("other")
        async def never(event: object) -> None: ...


def test_consumer_has_the_context(app: Flask, sqlite_store_url: str) -> None:
    other = Flask("other")
    webhooks = Webhooks(other, store=sqlite_store_url)
    names: list[str] = []

    @webhooks.consumer("usage-analytics")
    def count(event: object) -> None:
        names.append(current_app.name)

    webhooks.consumers["usage-analytics"].handler("event")
    assert names == ["other"]
