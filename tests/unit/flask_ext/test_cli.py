"""``flask admission show``."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from flask import Flask

from flask_ext import Admission

MakeApp = Callable[..., Flask]


@pytest.fixture
def app(make_app: MakeApp, admission: Admission) -> Flask:
    app = make_app(ADMISSION_ROUTES={"/x": "low"})
    app.add_url_rule("/pay/<int:id>", "pay", admission.share(0.25, cap=3)(lambda id: ""))
    app.add_url_rule("/alive", "alive", admission.exempt(lambda: ""))
    return app


def test_table(app: Flask) -> None:
    lines = app.test_cli_runner().invoke(args=["admission", "show"]).output.splitlines()
    assert lines[0].startswith("mode enforce")
    assert [line.split() for line in lines[2:]] == [
        ["pattern", "methods", "priority", "class", "share", "cap"],
        ["/x", "low", "/x"],
        ["/pay/*", "GET", "HEAD", "default", "pay", "0.25", "3"],
        ["=/alive", "GET", "HEAD", "exempt"],
    ]


def test_json(app: Flask) -> None:
    shown = json.loads(app.test_cli_runner().invoke(args=["admission", "show", "--json"]).output)
    assert shown["mode"] == "enforce"
    assert [row["pattern"] for row in shown["rules"]] == ["/x", "/pay/*", "=/alive"]


def test_off(make_app: MakeApp) -> None:
    app = make_app(ADMISSION_MODE="off", ADMISSION_ROUTES={"/x": "low"})
    output = app.test_cli_runner().invoke(args=["admission", "show"]).output
    assert output.startswith("mode off")
    assert "/x" not in output
