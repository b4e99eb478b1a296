"""Signals tell of refusals, in this application only, and can break nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from flask_ext import request_shed
from gunicorn_admission.core.types import Priority, Reason
from tests.flask_apps import full

MakeApp = Callable[..., Flask]


def test_the_gate_tells_of_refusals_only(make_app: MakeApp) -> None:
    app, other = (make_app(ADMISSION_ROUTES={"/x": "low"}) for _ in range(2))
    heard: list[Any] = []

    def hear(sender: Flask, **data: Any) -> None:
        heard.append((sender, data))

    with request_shed.connected_to(hear, app), full(app), full(other):
        assert app.test_client().get("/x").status_code == 503
        assert other.test_client().get("/x").status_code == 503
    about = {"reason": Reason.OVERLOADED, "priority": Priority.LOW, "partition": "/x"}
    assert heard == [(app, about)]


def test_a_receiver_that_fails(make_app: MakeApp, caplog: pytest.LogCaptureFixture) -> None:
    app = make_app(ADMISSION_ROUTES={"/x": "low"})

    def fail(sender: Flask, **_: Any) -> None:
        raise ValueError("their bug")

    with request_shed.connected_to(fail), full(app):
        assert app.test_client().get("/x").status_code == 503
    assert "a receiver of admission-request-shed failed" in caplog.text
