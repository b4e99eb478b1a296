"""The verb: words and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gunicorn_admission.cli.verbs import root
from gunicorn_admission.webhooks.drill import stage


def test_json_says_pass_and_the_checks() -> None:
    done = CliRunner().invoke(root, ["drill", "--json"])
    document = json.loads(done.output)
    assert (done.exit_code, document["result"]) == (0, "PASS")
    assert {check["result"] for check in document["checks"]} == {"PASS"}
    assert "usage-analytics REFUSED" in done.output


def test_a_failed_check_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_PATIENCE", 1.0)
    monkeypatch.setattr(stage, "configure", lambda *_, **__: None)
    done = CliRunner().invoke(root, ["drill"])
    assert done.exit_code == 1
    assert "FAIL  exhausted_ceiling" in done.output
    assert done.output.splitlines()[-1].startswith("FAIL (")


def test_a_store_without_tables_is_wrong_usage(tmp_path: Path) -> None:
    done = CliRunner().invoke(root, ["drill", "--url", f"sqlite:///{tmp_path}/none.db"])
    assert done.exit_code == 2
    assert "db upgrade" in done.output
