"""Every block of README.md and docs/ does what its page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.markdown import name, pages
from tests.docs.page import Page


@pytest.mark.integration
@pytest.mark.parametrize("path", pages(), ids=name)
def test_page_runs(path: Path, tmp_path: Path) -> None:
    with Page(path, tmp_path) as page:
        page.run()
