"""A Flask application behind gunicorn's executor: decided on in front of it, once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration import apps_flask
from tests.integration.admission import (
    Start,
    assert_refused,
    configuration,
    hold,
    settled,
    wait_statistics,
)
from tests.integration.server import Gunicorn

APP = "tests.integration.apps_flask:app"
CONF = configuration(
    "from tests.integration.apps_admission import note_sendfile\nnote_sendfile()",
    limit=2,
    exempt=None,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gunicorn]:
    """One server for all: a slot that one test loses is found missing by the next."""
    directory = tmp_path_factory.mktemp("flask")
    with Gunicorn("--threads", "4", directory=directory, conf=CONF, app=APP) as server:
        yield server
        print(server.log)


@pytest.fixture(autouse=True)
def nothing_is_lost(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "server" in request.fixturenames:
        settled(request.getfixturevalue("server"))


def analytics(server: Gunicorn) -> None:
    """Check that a marked view is known in front of the routing, in any worker."""
    assert server.get("/analytics/1").json()["priority"] == "low"
    classes = server.get("/admission").json()["partitions"]
    assert "analytics" in classes
    assert "/analytics" not in classes  # what its path would be without the mark


def test_one_slot_a_request_and_one_line_a_worker(server: Gunicorn) -> None:
    before = settled(server)["granted"]
    seen = server.get("/block/none").json()
    assert (seen["decision"], seen["partition"]) == ("admitted", "/block")
    assert settled(server)["granted"] == before + 1
    assert "admission: gate" not in server.log
    assert "not used" not in server.log


def test_decorators_count_in_front_of_the_threads(server: Gunicorn) -> None:
    held = hold(server, 2, "priority")
    assert_refused(server.get("/analytics/1"), "overloaded")
    assert server.get("/alive").json() == {"decision": "exempt"}
    pending = server.send("/payments/none", method="POST")  # waits, and comes first
    wait_statistics(server, waiting=1)
    held.release()
    seen = pending.response().json()
    assert (seen["partition"], seen["priority"]) == ("payments", "high")


def test_the_first_request_of_a_worker_is_classified_already(gunicorn: Start) -> None:
    server = gunicorn("--threads", "4", conf=CONF, app=APP)
    analytics(server)


@pytest.mark.parametrize("more", [(), ("--preload",)])
def test_factory_with_and_without_preload(gunicorn: Start, more: tuple[str, ...]) -> None:
    factory = "tests.integration.apps_flask:create_app()"
    server = gunicorn("--threads", "4", "--workers", "2", *more, conf=CONF, app=factory)
    for _ in range(6):
        analytics(server)
    server.reload()
    analytics(server)


def test_caps_hold(server: Gunicorn) -> None:
    gate = server.gate("capped")
    first = server.send("/capped/capped")
    server.wait_records(event="call", path="/capped/capped")
    second = server.send("/capped/none")
    wait_statistics(server, waiting=1, inflight=1)
    gate.open()
    assert {first.response().status, second.response().status} == {200}
    assert settled(server)["partitions"]["capped"]["cap"] == 1


@pytest.mark.parametrize(
    ("path", "partition", "priority"),
    [("/shop/7", "shop.by_number", "high"), ("/shop/tom", "/shop", "default")],
)
def test_views_that_only_the_routing_tells_apart(
    server: Gunicorn, path: str, partition: str, priority: str
) -> None:
    seen = server.get(path).json()
    assert (seen["partition"], seen["priority"]) == (partition, priority)


def test_a_dependency_refuses_and_the_rest_goes_on(server: Gunicorn) -> None:
    gate = server.gate("db")
    first = server.send("/db/db")
    server.wait_records(event="call", path="/db/db")
    assert_refused(server.get("/db/none"), "overloaded")
    assert server.get("/shop/7").status == 200
    gate.open()
    assert first.response().status == 200
    assert server.get("/db/none").status == 200


def test_a_stream_ends_with_its_last_byte(server: Gunicorn) -> None:
    gate = server.gate("stream")
    exchange = server.send("/stream/stream")
    assert exchange.head() == 200
    assert exchange.read(5) == b"head\n"
    assert wait_statistics(server, inflight=1)["partitions"]["stream"]["inflight"] == 1
    gate.open()
    assert exchange.response().text == "/stream/stream\n"


def test_a_stream_whose_client_leaves(server: Gunicorn) -> None:
    gate = server.gate("left")
    exchange = server.send("/stream/left")
    exchange.head()
    exchange.close()
    gate.open()


def test_a_file_is_sent_by_the_kernel(server: Gunicorn) -> None:
    before = len(server.records(event="sendfile"))
    response = server.get("/file")
    assert response.body == Path(str(apps_flask.__file__)).read_bytes()
    rows = server.wait_records(before + 1, event="sendfile")
    assert [row["done"] for row in rows[before:]] == [True]


def test_bugs_and_strangers(server: Gunicorn) -> None:
    assert server.get("/fail").status == 500
    assert server.get("/missing").status == 404
    assert server.get("/payments/x").status == 405


def test_requests_on_one_connection(server: Gunicorn) -> None:
    with server.connect() as connection:
        for path in ("/analytics/1", "/shop/7", "/block/none"):
            exchange = server.send(path, connection=connection)
            assert exchange.response(keep=True).status == 200


def test_no_gate_anywhere_says_so(gunicorn: Start) -> None:
    server = gunicorn("--threads", "4", app=APP)
    assert server.get("/alive").json() == {}
    assert server.get("/alive").json() == {}
    assert server.log.count("call gunicorn_admission.hooks.install") == 1


def test_its_own_gate_where_it_is_told_the_threads(gunicorn: Start) -> None:
    factory = "tests.integration.apps_flask:create_app(ADMISSION_THREADS=4)"
    server = gunicorn("--threads", "4", app=factory)
    held = hold(server, 2, "own")  # the limit: 4 threads less one that waits and one spare
    assert_refused(server.get("/analytics/1"), "overloaded")
    assert server.get("/alive").json() == {"decision": "exempt"}
    held.release()
    assert server.get("/analytics/1").json()["partition"] == "analytics"


def test_settings_of_the_application_that_are_not_used(gunicorn: Start) -> None:
    factory = "tests.integration.apps_flask:create_app(ADMISSION_LIMIT=3, ADMISSION_ROUTES={})"
    server = gunicorn("--threads", "4", conf=CONF, app=factory)
    server.get("/alive")
    server.wait_log("not used: limit$")
