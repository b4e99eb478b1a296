"""The mark that all tests of this folder carry."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies in this folder; the hook sees the tests of all folders."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("integration")
