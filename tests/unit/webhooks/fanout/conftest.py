"""A store under a fake clock, on both engines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gunicorn_admission.webhooks.store import Store
from tests.fanning import WallClock


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


@pytest.fixture
def store(any_store_url: str, clock: WallClock) -> Iterator[Store]:
    with Store(any_store_url, clock=clock) as opened:
        yield opened
