"""Tests of observers read the log, so it is on."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture(autouse=True)
def enabled_logger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ``logging.config`` did in another test: it disables loggers it does not name."""
    monkeypatch.setattr(logging.getLogger("gunicorn_admission"), "disabled", False)
