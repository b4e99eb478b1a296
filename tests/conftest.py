"""
Rules for every test: where CI is set, a skip is a failure, since nothing may be missing.

And the databases, see ``stores.py``.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

from tests.stores import (  # noqa: F401
    any_store,
    any_store_url,
    empty_store_url,
    migrated_postgresql,
    migrated_sqlite,
    postgresql,
    postgresql_url,
    sqlite_store_url,
)

IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")


def _fail_when_skipped(report: Any) -> None:
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        where, line, why = report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{where}:{line}: skipped in CI, where nothing may be missing: {why}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    report = yield
    _fail_when_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    report = yield
    _fail_when_skipped(report)
    return report
