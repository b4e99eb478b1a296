"""The picture."""

from __future__ import annotations

from pathlib import Path

from gunicorn_admission.sim.compare import compare
from gunicorn_admission.sim.report import draw
from tests.simulating import scenario


def test_a_run_gives_one_picture_that_says_what_it_shows(tmp_path: Path) -> None:
    chosen = scenario(seconds=1, settings={"max_wait": "200ms"})
    comparison = compare(chosen, ("adaptive",), (4,))
    draw(comparison, tmp_path / "made" / "a.svg")
    draw(comparison, tmp_path / "b.svg")
    picture = (tmp_path / "b.svg").read_bytes()
    assert picture == (tmp_path / "made" / "a.svg").read_bytes()
    # Letters are drawn, and what they spell stands beside them.
    for words in ("small: a small one", "seed 4, 16 threads, settings: max_wait=200ms", "adaptive"):
        assert f"<!-- {words}" in picture.decode()
