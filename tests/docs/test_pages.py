"""Every block of README.md and docs/ does what its page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.markdown import blocks, name, pages
from tests.docs.page import DATABASE, Page


@pytest.mark.integration
@pytest.mark.parametrize("path", pages(), ids=name)
def test_page_runs(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    needed = any(DATABASE in block.text for block in blocks(path.read_text("utf-8")))
    database = request.getfixturevalue("postgresql_url") if needed else None
    with Page(path, tmp_path, database) as page:
        page.run()
