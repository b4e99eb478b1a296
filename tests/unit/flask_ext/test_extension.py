"""The extension: factory pattern, several applications, once each."""

from __future__ import annotations

import gc
import inspect
import weakref
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

import flask_ext
from flask_ext import PROVIDED_BY, Admission
from gunicorn_admission.errors import ConfigError
from tests.flask_apps import full, limiter_of, told


def make(**config: Any) -> Flask:
    app = Flask("shop", static_folder=None)
    app.config.from_mapping({"TESTING": True, "ADMISSION_THREADS": 8, **config})
    app.add_url_rule("/", "home", told)
    app.add_url_rule("/x", "x", told)
    return app


def seen(app: Flask, path: str) -> Any:
    """What ``told`` answers."""
    return app.test_client().get(path).json


def test_public_names() -> None:
    assert PROVIDED_BY == "gunicorn-admission"
    for name in flask_ext.__all__:
        assert getattr(flask_ext, name)


def test_at_once_or_later() -> None:
    app, later = make(), make()
    admission = Admission(app)
    admission.init_app(later)
    for one in (app, later):
        assert one.extensions["admission"] is admission
        assert seen(one, "/")["decision"] == "admitted"


def test_applications_have_settings_of_their_own() -> None:
    admission = Admission(routes={"/x": "low"})
    app, other = make(), make(ADMISSION_ROUTES={"/x": "high"})
    admission.init_app(app)
    admission.init_app(other, routes={"/x": "default"})
    with full(app):
        assert app.test_client().get("/x").status_code == 503
        assert seen(other, "/x")["priority"] == "default"
    assert limiter_of(app) is not limiter_of(other)


def test_again_changes_nothing() -> None:
    app = make()
    admission = Admission(app)
    entrance = app.wsgi_app
    admission.init_app(app)
    assert app.wsgi_app is entrance
    assert limiter_of(app).statistics().granted == 1


def test_again_with_something_else() -> None:
    app = make()
    admission = Admission(app)
    for again in (
        lambda: admission.init_app(app, limit=2),
        lambda: admission.init_app(app, mount="/api"),
        lambda: Admission(app),
    ):
        with pytest.raises(ConfigError, match="make one Admission"):
            again()


def test_wrong_settings_stop_the_start() -> None:
    with pytest.raises(ConfigError, match="did you mean 'limit'"):
        Admission(make(), limt=3)
    with pytest.raises(ConfigError, match="did you mean 'ADMISSION_LIMIT'"):
        Admission(make(ADMISSION_LIMT=3))
    with pytest.raises(ConfigError) as caught:
        Admission(make(ADMISSION_LIMIT=8))
    assert caught.value.source == "app.config ADMISSION_LIMIT"
    assert "limit 8 + waiting 0 + spare 1 = 9" in str(caught.value)


def test_sizes_in_the_environment_may_be_meant_for_gunicorn(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("GUNICORN_ADMISSION_THREADS", "8")
    monkeypatch.setenv("GUNICORN_ADMISSION_LIMIT", "8")
    app = make(TESTING=False)
    del app.config["ADMISSION_THREADS"]
    Admission(app)  # must not keep gunicorn from starting
    assert app.test_client().get("/").status_code == 200
    assert "limit 8 + waiting" in caplog.text


@pytest.mark.parametrize("mount", ["api", "/api/", "/a//b", "/"])
def test_wrong_mount(mount: str) -> None:
    with pytest.raises(ConfigError, match="a path such as '/api'"):
        Admission(make(), mount=mount)


def test_environment_and_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gunicorn_admission.toml").write_text('[gunicorn_admission]\nroutes = {"/x"="low"}')
    monkeypatch.setenv("GUNICORN_ADMISSION_THREADS", "20")
    app = make()
    del app.config["ADMISSION_THREADS"]
    Admission(app)
    assert seen(app, "/x")["priority"] == "low"
    assert limiter_of(app).statistics().max_limit == 13


def test_beside_other_middleware() -> None:
    app = make()
    app.wsgi_app = ProxyFix(app.wsgi_app)  # type: ignore[method-assign]
    Admission(app)
    app.wsgi_app = ProxyFix(app.wsgi_app)  # type: ignore[method-assign]
    assert seen(app, "/")["decision"] == "admitted"
    assert limiter_of(app).statistics().granted == 1


def test_statistics_of_the_current_application_or_the_only_one() -> None:
    admission = Admission()
    assert admission.statistics().requests is None
    app, other = make(), make()
    admission.init_app(app)
    app.test_client().get("/")
    assert admission.statistics().requests == limiter_of(app).statistics()
    admission.init_app(other)
    assert admission.statistics().requests is None  # which one?
    assert admission.statistics(app).requests == limiter_of(app).statistics()
    with app.app_context():
        assert admission.statistics().requests == limiter_of(app).statistics()
    with other.app_context():
        assert admission.statistics().requests is None
    assert admission.statistics(Flask("stranger")).requests is None


def test_an_application_can_go() -> None:
    admission = Admission()
    app = make(ADMISSION_THREADS=None)
    admission.init_app(app)
    app.test_client().get("/")
    reference = weakref.ref(app)
    del app
    gc.collect()
    assert reference() is None


def test_async_views_stay_what_they_are() -> None:
    admission = Admission()
    app = make()

    @app.route("/async")
    @admission.priority("low")
    async def view() -> dict[str, Any]:
        return told()

    admission.init_app(app)
    assert app.view_functions["view"] is view
    assert inspect.iscoroutinefunction(view)
