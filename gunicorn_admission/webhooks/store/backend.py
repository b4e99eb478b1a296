"""What a store asks of each engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from sqlalchemy import Connection, Engine

__all__ = ["Backend"]

T = TypeVar("T")


class Backend(Protocol):
    """One database, opened by one process. The methods are those of ``Store``."""

    @property
    def engine(self) -> Engine: ...

    def write(self, work: Callable[[Connection], T], timeout: float | None) -> T: ...

    def transaction(self) -> AbstractContextManager[Connection]: ...

    def read(self) -> AbstractContextManager[Connection]: ...

    def close(self) -> None: ...
