"""Applications to put under admission control."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from flask_ext import Admission
from gunicorn_admission.classify import announce as announcing
from tests.flask_apps import told

MakeApp = Callable[..., Flask]


@pytest.fixture(autouse=True)
def logger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let our log lines be seen, whatever logging settings an earlier test has left."""
    ours = logging.getLogger("gunicorn_admission")
    monkeypatch.setattr(ours, "disabled", False)
    monkeypatch.setattr(ours, "propagate", True)


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no application or server of another test be heard."""
    monkeypatch.setattr(announcing, "_sources", [])
    monkeypatch.setattr(announcing, "_subscribers", weakref.WeakKeyDictionary())


@pytest.fixture
def admission() -> Admission:
    return Admission()


@pytest.fixture
def make_app(admission: Admission) -> MakeApp:
    """Make an application with a gate for eight threads, and ``told`` at ``/`` and ``/x``."""

    def make(**config: Any) -> Flask:
        app = Flask("shop", static_folder=None)
        app.config.from_mapping({"TESTING": True, "ADMISSION_THREADS": 8, **config})
        app.add_url_rule("/", "home", told)
        app.add_url_rule("/x", "x", told)
        admission.init_app(app)
        return app

    return make
