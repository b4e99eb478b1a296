"""Webhooks in Django: the raw body, in front of its own parsing and limits."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest

django = pytest.importorskip("django")

from django.conf import settings  # noqa: E402

if not settings.configured:
    settings.configure(
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=__name__,
        SECRET_KEY="not-a-real-secret",
        MIDDLEWARE=["django.middleware.csrf.CsrfViewMiddleware"],
        DATA_UPLOAD_MAX_MEMORY_SIZE=10,
        DEFAULT_CHARSET="utf-8",
    )
    django.setup()

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest  # noqa: E402
from django.urls import path  # noqa: E402

from gunicorn_admission.django.webhooks import webhook_view  # noqa: E402
from gunicorn_admission.webhooks.intake import Source  # noqa: E402
from gunicorn_admission.webhooks.store import Store  # noqa: E402
from tests.intake_calls import SECRET, environ_of, github_sent, post, rows  # noqa: E402

FORM = b"payload=%7B%22a%22%3A1%7D"
FORM_TYPE = "application/x-www-form-urlencoded"
JSON = '{"text": "10 €, 🎉"}'.encode()
urlpatterns: list[Any] = []
App = Callable[..., Any]


@pytest.fixture
def store(sqlite_store_url: str) -> Iterator[Store]:
    with Store(sqlite_store_url) as opened:
        yield opened


@pytest.fixture
def view(store: Store) -> App:
    sources = [Source("git", provider="github", secrets=[SECRET], max_body=1000)]
    return webhook_view(store, sources)


@pytest.fixture
def app(view: App) -> App:
    from django.urls import clear_url_caches

    urlpatterns[:] = [path("hooks/<slug:source>", view)]
    clear_url_caches()
    return WSGIHandler()


@pytest.mark.parametrize(("body", "kind"), [(FORM, FORM_TYPE), (JSON, "application/json")])
def test_stored_byte_identical_in_spite_of_csrf_and_limits(
    app: App, store: Store, body: bytes, kind: str
) -> None:
    sent = github_sent(body, "d-1")
    assert post(app, "git", sent, CONTENT_TYPE=kind).json() == {"result": "stored"}
    assert post(app, "git", sent, CONTENT_TYPE=kind).json() == {"result": "duplicate"}
    assert [row.body for row in rows(store)] == [body]


def test_chunked(app: App, store: Store) -> None:
    chunked = {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}
    answer = post(app, "git", github_sent(JSON, "d-1"), CONTENT_LENGTH=None, **chunked)
    assert answer.status == 200
    assert [row.body for row in rows(store)] == [JSON]


def test_answers(app: App, store: Store) -> None:
    assert post(app, "git", github_sent(b"x" * 1001, "d")).status == 413
    assert post(app, "git", github_sent(JSON, "d", "wrong")).status == 401
    assert post(app, "nothing", github_sent(JSON, "d")).status == 404
    got = post(app, "git", github_sent(JSON, "d"), REQUEST_METHOD="GET")
    assert (got.status, got.headers["allow"]) == (405, "POST")
    assert rows(store) == []


def request(body: bytes, kind: str) -> WSGIRequest:
    sent = github_sent(body, "d-1")
    return WSGIRequest(environ_of("git", body, sent.headers, CONTENT_TYPE=kind))


@pytest.mark.parametrize("touch", ["body", "POST"])
def test_what_a_middleware_read_is_there_still(
    view: App, store: Store, touch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "DATA_UPLOAD_MAX_MEMORY_SIZE", 10_000)
    asked = request(FORM, FORM_TYPE)
    getattr(asked, touch)
    assert view(asked, source="git").status_code == 200
    assert [row.body for row in rows(store)] == [FORM]


def test_a_stream_that_a_middleware_took_is_an_honest_503(
    view: App, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    asked = request(JSON, "application/json")
    assert asked.read() == JSON
    answer = view(asked, source="git")
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert "did something in front of the intake read the body?" in caplog.text
    assert rows(store) == []


def test_a_server_that_is_not_wsgi(view: App, store: Store) -> None:
    asked = request(b"{}", "application/json")
    del asked.META["wsgi.input"]
    asked._stream = io.BytesIO(b"{}")
    assert view(asked, source="git").status_code == 200


def test_store_of_the_settings(sqlite_store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "WEBHOOKS_STORE_URL", sqlite_store_url, raising=False)
    view = webhook_view(sources=[Source("git", provider="github", secrets=[SECRET])])
    assert view(request(JSON, "application/json"), source="git").status_code == 200
    with Store(sqlite_store_url) as store:
        assert [row.body for row in rows(store)] == [JSON]
