"""Runs a drill from beginning to end and says what held."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import asdict, frozen

from gunicorn_admission.webhooks.drill.checks import CHECKS
from gunicorn_admission.webhooks.drill.stage import Failed, Stage
from gunicorn_admission.webhooks.store import Store

__all__ = ["Check", "Report", "run_drill"]

logger = logging.getLogger("gunicorn_admission.drill")


@frozen(kw_only=True)
class Check:
    """
    One check of a drill.

    Attributes:
        name: Of the check.
        result: ``PASS`` or ``FAIL``.
        about: What must hold.
        detail: What was seen.
    """

    name: str
    result: str
    about: str
    detail: str


@frozen(kw_only=True)
class Report:
    """
    What a drill found.

    Attributes:
        store: Which kind of store it played on.
        checks: In the order in which they ran.
    """

    store: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every check held."""
        return all(check.result == "PASS" for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "result": "PASS" if self.passed else "FAIL",
            "store": self.store,
            "checks": [asdict(check) for check in self.checks],
        }


def run_drill(
    url: str | None = None, *, tell: Callable[[Check], None] = lambda check: None
) -> Report:
    """
    Play all checks.

    Args:
        url: Of a store with tables. What is in it is left alone, and the drill's own rows are
            removed afterwards. ``None`` plays on a temporary SQLite file.
        tell: Called with each check when it is done.

    Raises:
        StoreError: The store cannot be used.
    """
    with _store(url) as (store, mark):
        stage = Stage(store, mark)
        try:
            stage.open()
            checks = tuple(_each(stage, tell))
        finally:
            stage.close()
        return Report(store=store.url.get_backend_name(), checks=checks)


def _each(stage: Stage, tell: Callable[[Check], None]) -> Iterator[Check]:
    for play in CHECKS:
        about = (play.__doc__ or "").strip()
        try:
            check = Check(name=play.__name__, result="PASS", about=about, detail=play(stage))
        except Failed as failed:
            check = Check(name=play.__name__, result="FAIL", about=about, detail=str(failed))
        except Exception as error:  # a check must not hide those after it
            logger.exception("check %s", play.__name__)
            detail = f"{type(error).__name__}: {error}"
            check = Check(name=play.__name__, result="FAIL", about=about, detail=detail)
        tell(check)
        yield check


@contextmanager
def _store(url: str | None) -> Iterator[tuple[Store, str]]:
    if url is not None:
        with Store(url) as store:
            yield store, f"-drill-{secrets.token_hex(3)}"
        return
    with (
        TemporaryDirectory(prefix="gunicorn-admission-drill-") as folder,
        Store(f"sqlite:///{Path(folder, 'drill.db')}") as store,
    ):
        store.upgrade()
        yield store, ""
