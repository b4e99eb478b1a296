"""A store without a server, a clock that stands, and a channel that remembers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import define, field

from gunicorn_admission.webhooks.pages import ChannelError
from gunicorn_admission.webhooks.pages.wording import Notice
from gunicorn_admission.webhooks.store import Store

#: 2026-11-30T14:02:00Z
START = 1_796_047_320.0


@define
class Clock:
    """Seconds since the epoch, moved by hand."""

    now: float = START

    def __call__(self) -> float:
        return self.now

    @property
    def micros(self) -> int:
        return round(self.now * 1e6)


@define
class Memory:
    """A channel that keeps what it was told, or fails."""

    name: str = "memory"
    repeat: float = 900.0
    refreshes: bool = False
    told: list[Notice] = field(factory=list)
    broken: bool = False

    def send(self, notice: Notice) -> None:
        if self.broken:
            raise ChannelError("memory: broken")
        self.told.append(notice)

    @property
    def texts(self) -> list[str]:
        return [notice.text for notice in self.told]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def channel() -> Memory:
    return Memory()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path}/pages.db", clock=clock)
    store.upgrade()
    yield store
    store.close()
