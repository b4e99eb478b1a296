"""An intake with a clock that stands, on a store with tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gunicorn_admission.webhooks.intake import Intake, Source
from gunicorn_admission.webhooks.intake.app import Intake as IntakeApp
from gunicorn_admission.webhooks.metrics import Metrics
from gunicorn_admission.webhooks.store import Store
from tests.intake_calls import SECRET
from tests.senders import AT

Make = Callable[..., Intake]


@pytest.fixture
def store(sqlite_store_url: str) -> Iterator[Store]:
    with Store(sqlite_store_url) as opened:
        yield opened


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def make(store: Store, metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes an intake for a source ``git``, or for those given."""
    monkeypatch.setattr(
        "gunicorn_admission.webhooks.intake.app.start_webhook_reporting", lambda: None
    )

    def build(*sources: Source, store: Store = store, **options: Any) -> IntakeApp:
        given = sources or (Source("git", provider="github", secrets=[SECRET]),)
        options = {"clock": lambda: AT, "metrics": metrics, "chance": lambda: 0.5, **options}
        return Intake(store, given, **options)

    return build
