"""The Flask example runs and shows what its README says."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.integration.server import Gunicorn
from tests.integration.wire import PATIENCE

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "flask_app"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The example's module, as ``flask run`` in its folder would import it."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    yield importlib.import_module("app")
    del sys.modules["app"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Gunicorn]:
    """The example behind its own ``gunicorn.conf.py``."""
    args = ("-c", str(EXAMPLE / "gunicorn.conf.py"), "--pythonpath", str(EXAMPLE))
    with Gunicorn(*args, directory=tmp_path, app="app:app") as server:
        yield server
        print(server.log)


def wait_database(server: Gunicorn, inflight: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while server.get("/numbers").json()["database"]["inflight"] != inflight:
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.integration
def test_a_slow_database_holds_four_threads(server: Gunicorn) -> None:
    assert server.get("/orders/1").json() == {"order": "order 1"}
    slow = [server.send(f"/orders/{n}?seconds=3") for n in (10, 11, 12, 13)]
    wait_database(server, 4)
    assert server.get("/about").status == 200
    refused = server.get("/reports/daily")
    assert refused.status == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.headers["admission-reason"]
    assert server.get("/orders/1").json() == {"order": "order 1"}  # from memory
    assert server.get("/orders/2").status == 503
    assert server.get("/payments/2", method="POST").status in (200, 503)
    assert server.get("/alive").status == 200
    assert [one.response().status for one in slow] == [200] * 4
    assert server.get("/export").text == "0\n1\n2\n3\n4\n"
    numbers = server.get("/numbers").json()
    assert numbers["database"]["inflight"] == 0
    assert numbers["database"]["refused"] >= 3


def test_a_test_client_sees_the_application(module: Any) -> None:
    client = module.app.test_client()
    assert client.get("/orders/1").json == {"order": "order 1"}
    assert client.get("/numbers").json["requests"] is None  # no server with threads, no gate


def test_the_rules_it_shows(module: Any) -> None:
    shown = module.app.test_cli_runner().invoke(args=["admission", "show"]).output
    assert "/reports/**" in shown
    assert "=/alive" in shown
