"""``Rejected`` in a view: an honest 503, unless the application knows better."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Blueprint, Flask, jsonify, request
from werkzeug.exceptions import HTTPException

from flask_ext import Admission, request_shed
from gunicorn_admission.core.types import Outcome, Priority, Reason
from gunicorn_admission.errors import Rejected
from tests.flask_apps import Outcomes, limiter_of, rejected

MakeApp = Callable[..., Flask]


def refuse() -> str:
    raise rejected()


@pytest.fixture
def app(make_app: MakeApp) -> Flask:
    app = make_app()
    app.add_url_rule("/refuse", "refuse", refuse, methods=["GET", "POST"])
    return app


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"PROPAGATE_EXCEPTIONS": True},
        {"TRAP_HTTP_EXCEPTIONS": True},
        {"TESTING": False},
        {"ADMISSION_MODE": "off"},
    ],
)
def test_the_same_answer_as_the_gates(make_app: MakeApp, config: dict[str, Any]) -> None:
    app = make_app(**config)
    app.add_url_rule("/refuse", "refuse", refuse)
    response = app.test_client().get("/refuse")
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "4"
    assert response.headers["Admission-Reason"] == "queue_full"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.content_type == "application/problem+json"
    assert int(response.headers["Content-Length"]) == len(response.data)
    problem = response.get_json()
    assert (problem["status"], problem["reason"], problem["retry_after"]) == (503, "queue_full", 4)


def test_head(app: Flask) -> None:
    response = app.test_client().head("/refuse")
    assert (response.status_code, response.data) == (503, b"")
    assert response.headers["Retry-After"] == "4"


def test_429(make_app: MakeApp) -> None:
    app = make_app(ADMISSION_SHED_STATUS=429)
    app.add_url_rule("/refuse", "refuse", refuse)
    app.register_error_handler(503, lambda error: ("not this", 503))
    response = app.test_client().get("/refuse")
    assert response.status_code == 429
    assert response.get_json()["status"] == 429


def test_our_own_503_is_no_sign_of_overload(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    app.add_url_rule("/below", "below", lambda: ("down", 503))
    environs: list[Any] = []
    app.teardown_request(lambda error: environs.append(request.environ))
    outcomes = Outcomes(limiter_of(app), monkeypatch)
    environs.clear()
    app.test_client().get("/refuse")
    app.test_client().get("/below")
    assert outcomes == [Outcome.IGNORE, Outcome.DROP]
    assert environs[0]["gunicorn_admission.reason"] == "queue_full"


@pytest.mark.parametrize("early", [True, False])
def test_a_handler_for_rejected_wins(admission: Admission, early: bool) -> None:
    app = Flask("a")
    app.add_url_rule("/refuse", "refuse", refuse)

    def handle(error: Rejected) -> tuple[str, int]:
        return f"{error.reason.value} {error.partition}", 200

    if early:
        app.register_error_handler(Rejected, handle)
    admission.init_app(app)
    if not early:
        app.register_error_handler(Rejected, handle)
    response = app.test_client().get("/refuse")
    assert (response.status_code, response.text) == (200, "queue_full postgres")


def test_a_handler_for_503_wins(app: Flask) -> None:
    @app.errorhandler(503)
    def handle(error: Any) -> tuple[str, int, dict[str, str]]:
        return f"later: {error.rejected.reason.value} {error.retry_after}", error.code, {}

    response = app.test_client().get("/refuse")
    assert (response.status_code, response.text) == (503, "later: queue_full 4")


def test_a_handler_for_all_http_errors_can_keep_our_headers(app: Flask) -> None:
    @app.errorhandler(HTTPException)
    def handle(error: HTTPException) -> Any:
        response = error.get_response()
        response.data = jsonify(code=error.code, name=error.name).data
        return response

    response = app.test_client().get("/refuse")
    assert response.headers["Retry-After"] == "4"
    assert response.get_json() == {"code": 503, "name": "Service Unavailable"}


def test_a_blueprints_handler_is_for_its_views(make_app: MakeApp) -> None:
    shop = Blueprint("shop", __name__)
    shop.add_url_rule("/shop", "refuse", refuse)
    shop.register_error_handler(503, lambda error: ("the shop is busy", 503))
    app = make_app()
    app.add_url_rule("/refuse", "refuse", refuse)
    app.register_blueprint(shop)
    assert app.test_client().get("/shop").text == "the shop is busy"
    assert app.test_client().get("/refuse").headers["Admission-Reason"] == "queue_full"


def test_a_view_may_do_without(app: Flask) -> None:
    def without() -> str:
        try:
            return refuse()
        except Rejected:
            return "from the cache"

    app.add_url_rule("/without", "without", without)
    assert app.test_client().get("/without").text == "from the cache"


def test_signal(app: Flask) -> None:
    heard: list[Any] = []

    def hear(sender: Flask, **data: Any) -> None:
        heard.append((sender, data))

    with request_shed.connected_to(hear, app):
        app.test_client().get("/refuse")
        app.test_client().get("/")
    assert heard == [
        (app, {"reason": Reason.QUEUE_FULL, "priority": Priority.LOW, "partition": "postgres"})
    ]
