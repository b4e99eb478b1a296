"""Liveness, readiness and figures below ``status_path``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gunicorn_admission.classify import Classifier
from gunicorn_admission.core.types import Mode
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.scoreboard import Page, Row
from gunicorn_admission.settings import Settings
from gunicorn_admission.status import Aside, Probes, Readiness
from gunicorn_admission.wsgi import Gate, say_that_it_is_alone
from tests.observing import idle

PATH = "/-/admission"
BELOW = f"{PATH}/ready"


def ask(app: Any, path: str, method: str = "GET", **environ: str) -> tuple[int, dict[str, Any]]:
    """Status and JSON; the body of HEAD must be empty."""
    seen: list[Any] = []
    environ = {
        "REQUEST_METHOD": method, "PATH_INFO": path, "REMOTE_ADDR": "192.0.2.7", **environ,
    }  # fmt: skip
    body = b"".join(app(environ, lambda status, headers: seen.append((status, dict(headers)))))
    ((status, headers),) = seen
    assert headers["Content-Type"] == "application/json"
    assert headers["Cache-Control"] == "no-store"
    if method == "HEAD":
        assert body == b""
        return int(status[:3]), {}
    assert int(headers["Content-Length"]) == len(body)
    return int(status[:3]), json.loads(body)


def probes(row: Row | None = None, **state: Any) -> Probes:
    return Probes(PATH, Readiness(lambda: idle(**state), row))


@pytest.mark.parametrize(
    ("state", "reason"),
    [({"starved": True}, "starved"), ({"paused": True}, "paused"), ({"closed": True}, "stopping")],
)
def test_not_ready_says_why_and_is_alive_all_the_same(state: dict[str, bool], reason: str) -> None:
    app = probes(**state)
    assert ask(app, BELOW) == (503, {"ready": False, "reason": reason})
    assert ask(app, BELOW, "HEAD") == (503, {})
    assert ask(app, f"{PATH}/live") == (200, {"live": True})


def test_overload_is_no_reason_to_send_requests_to_others() -> None:
    assert ask(probes(overloaded=True, waiting=99), BELOW) == (200, {"ready": True})
    assert ask(Probes(PATH, Readiness()), f"{BELOW}/") == (200, {"ready": True})


def two_rows() -> tuple[Row, Row]:
    page = Page(used=2)
    rows = Row(page, 0, {}), Row(page, 1, {})
    for pid, row in enumerate(rows, 100):
        row.occupy(pid, 1)
    return rows


def test_a_node_is_ready_as_long_as_one_worker_is() -> None:
    own, other = two_rows()
    starved: dict[str, Any] = {"starved": True, "max_limit": 4, "stuck": 3}
    own.publish(idle(**starved))
    other.publish(idle(max_limit=4))
    assert ask(probes(own, **starved), BELOW)[0] == 200
    other.publish(idle(**starved))
    assert ask(probes(own, **starved), BELOW)[0] == 503
    assert ask(probes(own, max_limit=4), BELOW)[0] == 200  # this one has recovered


def test_a_node_is_not_ready_while_hung_requests_hold_what_it_may_run() -> None:
    own, other = two_rows()
    for row in (own, other):
        row.publish(idle(max_limit=8, stuck=2, node_limit=4))
    assert ask(probes(own, max_limit=8, stuck=2, node_limit=4), BELOW)[0] == 503
    assert ask(probes(own, max_limit=8, stuck=2), BELOW)[0] == 200


@pytest.mark.parametrize(
    ("environ", "status"),
    [
        ({"REMOTE_ADDR": "127.0.0.1"}, 200),
        ({"REMOTE_ADDR": "::1"}, 200),
        ({"REMOTE_ADDR": "192.0.2.7"}, 404),
        ({"REMOTE_ADDR": ""}, 404),
        ({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "192.0.2.7"}, 404),
        ({"REMOTE_ADDR": "127.0.0.1", "HTTP_FORWARDED": "for=192.0.2.7"}, 404),
        ({"REMOTE_ADDR": "127.0.0.1", "HTTP_VIA": "1.1 proxy"}, 404),
        ({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_REAL_IP": "192.0.2.7"}, 404),
    ],
)
def test_figures_are_for_clients_on_this_machine(environ: dict[str, str], status: int) -> None:
    own, _ = two_rows()
    own.publish(idle(limit=3))
    seen, data = ask(probes(own, limit=3, node_limit=20, node_inflight=5), PATH, **environ)
    assert seen == status
    if status == 200:
        assert data["ready"] is True
        assert (data["worker"]["slot"], data["worker"]["limit"]) == (0, 3)
        assert data["node"] == {"limit": 20, "inflight": 5}
        assert [worker["pid"] for worker in data["workers"]] == [100, 101]
    else:
        assert data == {}


def test_other_paths_and_methods_are_refused() -> None:
    app = probes()
    assert ask(app, f"{PATH}/else")[0] == 404
    assert ask(app, BELOW, "POST")[0] == 405


@pytest.mark.parametrize(
    ("path", "covered"),
    [(PATH, True), (f"{PATH}/", True), (BELOW, True), (f"{PATH}x", False), ("/", False)],
)
def test_only_paths_below_ours_are_taken(path: str, covered: bool) -> None:
    assert probes().covers(path) is covered
    assert Probes(f"{PATH}/", Readiness()).covers(path) is covered


def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    headers = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
    ready = environ.get("gunicorn_admission.ready")
    body = json.dumps({"app": True, "ready": ready and ready()}).encode()
    start_response("200 OK", [*headers, ("Content-Length", str(len(body)))])
    return [body]


def gate(**settings: Any) -> Gate:
    chosen = Settings(threads=8, **settings)
    return Gate(application, Limiter(chosen), Classifier(chosen), chosen)


def test_the_gate_answers_probes_and_tells_those_of_the_application() -> None:
    app = gate(status_path=PATH)
    assert ask(app, BELOW) == (200, {"ready": True})
    assert ask(app, "/healthz") == (200, {"app": True, "ready": True})
    app.limiter.pause()
    assert ask(app, BELOW) == (503, {"ready": False, "reason": "paused"})
    assert ask(app, "/healthz") == (200, {"app": True, "ready": False})


def test_without_a_status_path_there_is_none() -> None:
    app = gate()
    assert ask(app, BELOW) == (200, {"app": True, "ready": None})


def test_probes_stand_beside_an_application_that_nothing_limits() -> None:
    app = Aside(application, probes())
    assert ask(app, BELOW) == (200, {"ready": True})
    assert ask(app, "/") == (200, {"app": True, "ready": None})


def test_figures_follow_the_mode() -> None:
    limiter = Limiter(Settings(threads=8))
    limiter.set_mode(Mode.MONITOR)
    figures = Readiness(limiter.statistics).figures()
    assert figures["worker"]["mode"] == "monitor"
    assert "node" not in figures and "workers" not in figures


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"node_limit": 4}, True),
        ({"node_cap": {"/a": 1}}, True),
        ({"routes": {"/a": {"node_cap": 1}}}, True),
        ({"recycle_after": "2m"}, True),
        ({}, False),
    ],
)
def test_who_has_no_siblings_says_what_that_means(
    settings: dict[str, Any], said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    say_that_it_is_alone(Settings(**settings))
    assert ("hold for this process alone" in caplog.text) is said
    app = gate(**settings)
    bound = {"node_limit": 4}.items() <= settings.items()
    assert app.limiter.policy.max_limit == (4 if bound else 8)
