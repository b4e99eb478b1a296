"""``gunicorn-admission db`` as a user runs it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gunicorn_admission.cli.verbs import root
from gunicorn_admission.webhooks.store.upgrade import HEAD


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GUNICORN_ADMISSION_STORE_URL", raising=False)


def run(*arguments: str, url: str | None = None) -> Result:
    environment = {"GUNICORN_ADMISSION_STORE_URL": url}
    return CliRunner().invoke(root, ["db", *arguments], env=environment)


def test_upgrade_says_what_it_did(empty_store_url: str) -> None:
    first = run("upgrade", url=empty_store_url)
    assert (first.exit_code, first.output) == (0, f"Made the tables, revision {HEAD}.\n")
    again = run("upgrade", "--url", empty_store_url)
    assert again.output == f"The tables are of revision {HEAD} already.\n"
    document = run("upgrade", "--url", empty_store_url, "--json")
    assert json.loads(document.output) == {"before": HEAD, "after": HEAD}


def test_default_file() -> None:
    assert run("upgrade").exit_code == 0
    assert Path("webhooks.db").exists()


def test_sql_changes_nothing(empty_store_url: str) -> None:
    script = run("upgrade", "--sql", url=empty_store_url)
    assert script.exit_code == 0, script.output
    assert script.output.count("CREATE TABLE webhook_") >= 9
    assert "Made" in run("upgrade", url=empty_store_url).output
    assert "CREATE TABLE" not in run("upgrade", "--sql", url=empty_store_url).output


def test_what_goes_wrong_is_one_line(tmp_path: Path) -> None:
    for url, says in {
        "mysql://u:pw1@h/d": "sqlite:///path or postgresql",
        f"sqlite:///{tmp_path}/none/x.db": "folder has to exist",
        "postgresql://nobody@127.0.0.1:1/x": "not reachable",
        f"sqlite:///{tmp_path}/text": "not a database",
    }.items():
        (tmp_path / "text").write_text("no database at all" * 100)
        done = run("upgrade", url=url)
        assert done.exit_code == 2, done.output
        assert says in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert "pw1" not in done.stderr


def test_an_older_database_is_named() -> None:
    run("upgrade")
    with sqlite3.connect("webhooks.db") as connection:
        connection.execute("UPDATE webhook_schema SET version_num = '9999'")
    connection.close()
    done = run("upgrade")
    assert done.exit_code == 2
    assert "newer than" in done.stderr


def test_check(any_store_url: str) -> None:
    done = run("check", "--url", any_store_url)
    assert (done.exit_code, done.output) == (0, "All is well.\n")
    assert json.loads(run("check", "--json", url=any_store_url).output) == {"problems": []}


def test_check_finds_what_is_broken() -> None:
    run("upgrade")
    with sqlite3.connect("webhooks.db") as connection:
        connection.execute("INSERT INTO webhook_secret VALUES ('nobody', 'k', 'env:X', 0, NULL)")
    connection.close()
    done = run("check")
    assert done.exit_code == 1
    assert "webhook_secret refers to a row of webhook_source that is not there" in done.output


def test_check_before_upgrade() -> None:
    assert run("check").exit_code == 2
