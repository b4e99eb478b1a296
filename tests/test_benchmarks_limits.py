"""The comparison of the limits marks what falls short, and reads what it wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.limits import Row, table

ROOT = Path(__file__).resolve().parent.parent


def row(scenario: str, **goodput: float) -> Row:
    others = {"gradient2": 50.0, "vegas": 50.0, "aimd": 50.0, "pool": 50.0, "oracle": 100.0}
    return Row(scenario=scenario, seeds=(1,), goodput={**others, **goodput}, spread=0.0)


def test_it_marks_what_falls_short() -> None:
    assert not row("mixed", adaptive=96.0).short
    assert row("yardstick-A", adaptive=96.0).short
    assert row("mixed", adaptive=94.0, vegas=100.0).short
    assert "`yardstick-A` !" in table([row("yardstick-A", adaptive=96.0)])


def test_it_runs_and_reads_what_it_wrote(tmp_path: Path) -> None:
    out = tmp_path / "out.json"

    def run(*options: str) -> str:
        command = [sys.executable, "-m", "benchmarks.limits", *options]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    said = run("--only", "all-nodes", "--seeds", "1", "--jobs", "1", "--json", str(out))
    assert "`all-nodes-500`" in said
    assert [one["scenario"] for one in json.loads(out.read_text())] == ["all-nodes-500"]
    assert run("--from", str(out)) == said
