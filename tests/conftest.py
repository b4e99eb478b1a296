"""Rules for every test: where CI is set, a skip is a failure, since nothing may be missing."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

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
