"""The gate in an application: admits, refuses, knows views, and keeps no slot."""

from __future__ import annotations

import gc
import io
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Blueprint, Flask, Response, abort, request, send_file, stream_with_context

from flask_ext import Admission
from gunicorn_admission.classify.announce import subscribe
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.settings import Settings
from gunicorn_admission.wsgi import AdmissionMiddleware
from tests.flask_apps import full, guard_of, limiter_of, told

MakeApp = Callable[..., Flask]


def get(app: Flask, path: str = "/", **environ: Any) -> Any:
    """The answer to a request that a server with threads seems to pass on."""
    with app.test_client().get(path, environ_overrides=environ, buffered=True) as response:
        return response


def test_a_request_has_one_slot(make_app: MakeApp) -> None:
    app = make_app()
    seen = get(app).json
    assert (seen["decision"], seen["partition"], seen["priority"]) == ("admitted", "/", "default")
    statistics = limiter_of(app).statistics()
    assert (statistics.granted, statistics.inflight, statistics.max_limit) == (1, 0, 5)


def test_a_refusal_is_honest(make_app: MakeApp) -> None:
    app = make_app(ADMISSION_ROUTES={"/x": "low"})
    with full(app):
        response = get(app, "/x")
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) >= 1
    assert response.headers["Admission-Reason"] == "overloaded"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.content_type == "application/problem+json"
    assert get(app, "/x").status_code == 200


def test_a_refusal_costs_no_request_context(make_app: MakeApp) -> None:
    app = make_app(ADMISSION_ROUTES={"/x": "low"})
    calls: list[str] = []
    app.before_request(lambda: calls.append(request.path))
    with full(app):
        get(app, "/x")
    assert "/x" not in calls


def test_priority_is_known_before_the_view_is_found(
    make_app: MakeApp, admission: Admission
) -> None:
    app = make_app()
    app.add_url_rule("/low/<int:n>", "low", admission.priority("low")(lambda n: told()))
    app.add_url_rule("/alive", "alive", admission.exempt(lambda: told()))
    with full(app):
        assert get(app, "/low/1").status_code == 503
        assert get(app, "/alive").json == {"decision": "exempt"}


def test_share_and_cap_hold(make_app: MakeApp, admission: Admission) -> None:
    app = make_app(ADMISSION_MAX_WAIT=0)
    app.add_url_rule("/db", "db", admission.cap(1)(admission.share(0.25)(lambda: told())))
    limiter = limiter_of(app)
    assert limiter.statistics().partitions["db"].held == 1
    with limiter.acquire(partition="db"):
        assert get(app, "/db").status_code == 503
        assert get(app, "/x").status_code == 200


def test_blueprints(make_app: MakeApp, admission: Admission) -> None:
    shop = Blueprint("shop", __name__, url_prefix="/shop")
    shop.add_url_rule("/<item>", "item", admission.priority("high")(lambda item: told()))
    app = make_app()
    app.register_blueprint(shop)
    seen = get(app, "/shop/1").json
    assert (seen["partition"], seen["priority"]) == ("shop.item", "high")


def test_settings_have_the_last_word_over_decorators(
    make_app: MakeApp, admission: Admission
) -> None:
    app = make_app(ADMISSION_ROUTES={"=/pay": {"priority": "high", "name": "pay"}})
    app.add_url_rule("/pay", "pay_view", admission.priority("low")(lambda: told()))
    seen = get(app, "/pay").json
    assert (seen["partition"], seen["priority"]) == ("pay", "high")


def two_alike(app: Flask, admission: Admission) -> None:
    """Two views that only the routing tells apart."""
    app.add_url_rule("/<int:id>", "by_id", admission.priority("low")(lambda id: told()))
    app.add_url_rule("/<name>", "by_name", lambda name: told())


def test_views_that_only_the_routing_tells_apart(make_app: MakeApp, admission: Admission) -> None:
    app = make_app()
    two_alike(app, admission)
    seen = get(app, "/7").json
    assert (seen["partition"], seen["priority"]) == ("by_id", "low")
    seen = get(app, "/tom").json
    assert (seen["partition"], seen["priority"]) == ("(other)", "default")
    partitions = limiter_of(app).statistics().partitions
    assert partitions["(other)"].granted == 2  # where they were admitted
    assert all(one.inflight == 0 for one in partitions.values())


def test_reclassified_while_it_runs(make_app: MakeApp, admission: Admission) -> None:
    app = make_app()
    inflight: list[int] = []

    @admission.cap(1)
    def by_id(id: int) -> str:
        inflight.append(limiter_of(app).statistics().partitions["by_id"].inflight)
        return ""

    app.add_url_rule("/<int:id>", "by_id", by_id)
    app.add_url_rule("/<name>", "by_name", lambda name: told())
    get(app, "/7")
    assert inflight == [1]


def test_one_class_for_all(make_app: MakeApp, admission: Admission) -> None:
    app = make_app(ADMISSION_PARTITION_BY="none")
    two_alike(app, admission)
    seen = get(app, "/7").json
    assert (seen["partition"], seen["priority"]) == ("(all)", "low")


def test_rules_that_contradict_each_other(
    make_app: MakeApp, admission: Admission, caplog: pytest.LogCaptureFixture
) -> None:
    def add(app: Flask) -> None:
        app.add_url_rule("/a", "a", admission.share(0.5)(lambda: told()))
        app.add_url_rule("/b", "b", admission.share(0.6)(lambda: told()))

    app = make_app()
    add(app)
    with pytest.raises(ConfigError, match="shares that sum"):
        get(app)
    app = make_app(TESTING=False)
    add(app)
    assert get(app, "/a").json["partition"] == "a"
    assert get(app, "/b").status_code == 200
    assert "shares that sum" in caplog.text


# -- ends ----------------------------------------------------------------------------


def stream(app: Flask) -> None:
    """Views whose answers are not all computed at once."""

    def chunks() -> Iterator[str]:
        yield str(limiter_of(app).statistics().inflight)
        yield request.path

    app.add_url_rule("/stream", "stream", lambda: Response(stream_with_context(chunks())))
    app.add_url_rule("/file", "file", lambda: send_file(io.BytesIO(b"file"), "text/plain"))
    app.add_url_rule("/real", "real", lambda: send_file(__file__))


def test_a_stream_keeps_its_slot_to_the_end(make_app: MakeApp) -> None:
    app = make_app()
    stream(app)
    limiter = limiter_of(app)
    assert get(app, "/stream").text == "1/stream"
    response = app.test_client().get("/stream")
    assert limiter.statistics().inflight == 1
    assert response.text == "1/stream"  # read, not closed
    assert limiter.statistics().inflight == 0


@pytest.mark.parametrize("path", ["/file", "/real"])
def test_a_file(make_app: MakeApp, path: str) -> None:
    app = make_app()
    stream(app)
    limiter = limiter_of(app)
    with app.test_client().get(path) as response:
        assert response.data
    assert limiter.statistics().inflight == 0


def test_answers_that_a_test_keeps_hold_nothing(make_app: MakeApp) -> None:
    app = make_app()
    client = app.test_client()
    kept = [client.get("/x") for _ in range(20)]
    assert {response.status_code for response in kept} == {200}
    assert limiter_of(app).statistics().inflight == 0
    assert kept[0].json == kept[-1].json


def test_errors_and_redirects_that_a_test_keeps(make_app: MakeApp) -> None:
    app = make_app()
    app.add_url_rule("/slash/", "slash", told)
    app.add_url_rule("/abort", "abort", lambda: abort(409, "twice"))
    client = app.test_client()
    kept = [client.get(path) for path in ("/missing", "/slash", "/abort") for _ in range(7)]
    assert [response.status_code for response in kept[::7]] == [404, 308, 409]
    assert limiter_of(app).statistics().inflight == 0
    assert "twice" in kept[-1].text


def test_a_stream_that_a_test_forgets(make_app: MakeApp) -> None:
    app = make_app()
    app.add_url_rule("/plain", "plain", lambda: Response(iter(["a", "b"])))
    limiter = limiter_of(app)
    assert app.test_client().get("/plain").status_code == 200
    gc.collect()
    limiter.tick()
    statistics = limiter.statistics()
    assert (statistics.inflight, statistics.leaked) == (0, 1)


def fail() -> str:
    raise ValueError("a bug")


@pytest.mark.parametrize("config", [{}, {"PROPAGATE_EXCEPTIONS": False, "TESTING": False}])
def test_a_bug_in_a_view(make_app: MakeApp, config: dict[str, Any]) -> None:
    app = make_app(**config)
    app.add_url_rule("/fail", "fail", fail)
    limiter = limiter_of(app)
    try:
        assert get(app, "/fail").status_code == 500
    except ValueError:
        assert not config
    assert limiter.statistics().inflight == 0


def test_a_bug_in_a_stream(make_app: MakeApp) -> None:
    def chunks() -> Iterator[str]:
        yield "x"
        fail()

    app = make_app()
    app.add_url_rule("/stream", "stream", lambda: Response(chunks()))
    limiter = limiter_of(app)
    with pytest.raises(ValueError, match="a bug"):
        get(app, "/stream")
    assert limiter.statistics().inflight == 0


def test_a_client_that_keeps_its_context(make_app: MakeApp) -> None:
    app = make_app()
    with app.test_client() as client:
        client.get("/x")
        assert request.path == "/x"
    assert limiter_of(app).statistics().inflight == 0


# -- where there is a gate already ---------------------------------------------------


def test_no_second_slot_behind_a_middleware(make_app: MakeApp, admission: Admission) -> None:
    app = make_app()
    two_alike(app, admission)
    outer = AdmissionMiddleware(app.wsgi_app, threads=8)
    app.wsgi_app = outer  # type: ignore[method-assign]
    seen = get(app, "/7").json
    assert (seen["partition"], seen["priority"]) == ("by_id", "low")
    assert outer.limiter.statistics().granted == 1
    assert guard_of(app)._gates == {}


def outside(app: Flask, **settings: Any) -> tuple[Any, Limiter]:
    """A server's gate that applications can announce their rules to."""
    gate = AdmissionMiddleware(app, threads=8, **settings)
    subscribe(gate.classifier, gate.limiter)
    return gate, gate.limiter


def through(gate: Any, path: str, script_name: str = "") -> list[str]:
    """Statuses that a server sees for a request."""
    statuses: list[str] = []
    environ = Flask("x").test_request_context(path).request.environ
    environ["SCRIPT_NAME"] = script_name
    result = gate(environ, lambda status, headers, exc_info=None: statuses.append(status))
    b"".join(result)
    if hasattr(result, "close"):
        result.close()
    return statuses


def test_the_servers_gate_learns_the_decorators(
    make_app: MakeApp, admission: Admission, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(ADMISSION_ROUTES={"/reports": "low"}, ADMISSION_LIMIT=2)
    app.add_url_rule("/early", "early", admission.priority("low")(lambda: told()))
    gate, limiter = outside(app)
    app.add_url_rule("/late", "late", admission.priority("low")(lambda: told()))
    assert through(gate, "/") == ["200 OK"]
    assert "not used: limit, threads" in caplog.text
    limiter.set_limit(1)
    with limiter.acquire():
        for path in ("/early", "/late", "/reports/1"):
            assert through(gate, path) == ["503 Service Unavailable"]
    assert through(gate, "/early") == ["200 OK"]
    assert admission.statistics(app).requests == limiter.statistics()


def test_the_server_has_the_last_word(make_app: MakeApp, admission: Admission) -> None:
    app = make_app()
    app.add_url_rule("/pay", "pay_view", admission.priority("low")(lambda: told()))
    gate, limiter = outside(app, routes={"=/pay": {"priority": "high", "name": "pay"}})
    through(gate, "/pay")
    assert limiter.statistics().partitions["pay"].granted == 1
    assert "pay_view" not in limiter.statistics().partitions


def test_a_mounted_application_is_told_by_the_routing(
    admission: Admission, make_app: MakeApp
) -> None:
    app = make_app()
    seen: list[dict[str, Any]] = []
    view = admission.priority("low")(lambda: seen.append(told()) or "")  # type: ignore[func-returns-value]
    app.add_url_rule("/reports", "reports", view)

    def mounting(environ: dict[str, Any], start_response: Any) -> Any:
        environ["SCRIPT_NAME"], environ["PATH_INFO"] = "/api", environ["PATH_INFO"][4:]
        return app(environ, start_response)

    gate = AdmissionMiddleware(mounting, threads=8)
    subscribe(gate.classifier, gate.limiter)
    through(gate, "/api/reports")
    assert (seen[-1]["partition"], seen[-1]["priority"]) == ("reports", "low")


def test_a_mounted_application_that_says_where(admission: Admission) -> None:
    app = Flask("api")
    app.add_url_rule("/reports", "reports", admission.priority("low")(lambda: told()))
    admission.init_app(app, mount="/api", routes={"/x": "low"})

    def mounting(environ: dict[str, Any], start_response: Any) -> Any:
        environ["SCRIPT_NAME"], environ["PATH_INFO"] = "/api", environ["PATH_INFO"][4:]
        return app(environ, start_response)

    gate = AdmissionMiddleware(mounting, threads=8)
    subscribe(gate.classifier, gate.limiter)
    gate.limiter.set_limit(1)
    with gate.limiter.acquire():
        assert through(gate, "/api/reports") == ["503 Service Unavailable"]
        assert through(gate, "/api/x/y") == ["503 Service Unavailable"]


# -- where there is none -------------------------------------------------------------

REAL: dict[str, Any] = {"wsgi.multithread": True, "SERVER_SOFTWARE": "Werkzeug/3.1"}


@pytest.mark.parametrize(
    ("environ", "threads"),
    [(REAL, 64), ({**REAL, "SERVER_SOFTWARE": "waitress"}, 4)],
)
def test_threads_of_known_servers(make_app: MakeApp, environ: Any, threads: int) -> None:
    app = make_app(ADMISSION_THREADS=None)
    assert get(app, **environ).json["decision"] == "admitted"
    expected = Settings().derive(threads, waiting_holds_thread=True).policy.max_limit
    assert limiter_of(app).statistics().max_limit == expected


@pytest.mark.parametrize(
    ("server", "hint"),
    [("gunicorn/27.0", "call gunicorn_admission.hooks.install"), ("cheroot", "ADMISSION_THREADS")],
)
def test_off_where_the_threads_are_not_known(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture, server: str, hint: str
) -> None:
    app = make_app(ADMISSION_THREADS=None)
    for _ in range(3):
        assert get(app, **{**REAL, "SERVER_SOFTWARE": server}).json == {}
    assert [hint in record.message for record in caplog.records] == [True]


def test_off_with_one_thread(make_app: MakeApp, caplog: pytest.LogCaptureFixture) -> None:
    app = make_app(ADMISSION_THREADS=1)
    for _ in range(3):
        assert get(app).json == {}
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "one thread" in caplog.text


def test_off_where_requests_come_one_by_one(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(ADMISSION_THREADS=None, TESTING=False)
    assert get(app).json == {}  # a test client: nothing to complain about
    assert not caplog.records
    assert get(app, SERVER_SOFTWARE="gunicorn/27").json == {}
    assert get(app, SERVER_SOFTWARE="gunicorn/27").json == {}
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert get(app, **REAL).json["decision"] == "admitted"  # the same process serves after all


def test_a_size_that_does_not_fit_the_assumed_threads(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    waitress = {**REAL, "SERVER_SOFTWARE": "waitress"}
    app = make_app(ADMISSION_THREADS=None, ADMISSION_LIMIT=8, TESTING=False)
    assert get(app, **waitress).json == {}
    assert "limit 8 + waiting" in caplog.text
    app = make_app(ADMISSION_THREADS=None, ADMISSION_LIMIT=8)
    with pytest.raises(ConfigError):
        get(app, **waitress)


def test_mode_off(make_app: MakeApp) -> None:
    app = make_app(ADMISSION_MODE="off")
    assert get(app).json == {}
    assert app.wsgi_app.__func__ is Flask.wsgi_app  # type: ignore[attr-defined]


def test_monitor_refuses_nothing(make_app: MakeApp) -> None:
    app = make_app(ADMISSION_MODE="monitor", ADMISSION_ROUTES={"/x": "low"})
    with full(app) as limiter:
        assert get(app, "/x").status_code == 200
    assert limiter.statistics().would_shed == {("low", "overloaded"): 1}


def test_a_fork_starts_anew(make_app: MakeApp) -> None:
    app = make_app()
    get(app)
    child = os.fork()
    if child == 0:
        try:
            seen = get(app).json
            fine = seen["decision"] == "admitted" and limiter_of(app).statistics().granted == 1
            os._exit(0 if fine else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert limiter_of(app).statistics().granted == 1


def test_reporting_starts_with_the_first_request(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(TESTING=False)
    with caplog.at_level(logging.INFO):
        get(app)
    gate = guard_of(app)._gates[os.getpid()]
    assert not isinstance(gate, str)
    assert gate.reporter is not None
    gate.reporter.stop()
    assert "admission: gate in 'shop', limit adaptive of 8 threads, queue 2, enforce" in caplog.text
