"""``gunicorn-admission sources`` and ``events`` as a user runs them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gunicorn_admission.cli.verbs import root
from gunicorn_admission.webhooks.intake import Intake, Source
from gunicorn_admission.webhooks.store import Store
from tests.intake_calls import SECRET, github_sent, post
from tests.senders import AT, Sent

BODY = '{"text": "10 €, 🎉"}'.encode()


@pytest.fixture(autouse=True)
def url(sqlite_store_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("GUNICORN_ADMISSION_STORE_URL", sqlite_store_url)
    return sqlite_store_url


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(root, arguments, input=stdin)


def good(*arguments: str, stdin: str | bytes | None = None) -> str:
    done = run(*arguments, stdin=stdin)
    assert done.exit_code == 0, done.output
    return done.output


def listed() -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(good("sources", "list", "--json"))
    return found


def test_add_reads_the_secret_from_standard_input_and_shows_it_nowhere() -> None:
    added = good("sources", "add", "git", "--provider", "github", stdin=f"{SECRET}\n")
    assert "GitHub may post to /hooks/git" in added
    for shown in (added, good("sources", "list"), good("sources", "list", "--json")):
        assert SECRET not in shown
    (source,) = listed()
    assert (source["name"], source["provider"], source["enabled"]) == ("git", "github", True)
    assert source["max_body"] == 25 * 1024 * 1024


def test_a_secret_on_the_command_line_is_refused() -> None:
    done = run("sources", "add", "git", "--provider", "github", "--secret", "plain-text")
    assert done.exit_code == 2
    assert "every user of this machine could see it" in done.output
    assert listed() == []


def test_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GIT_SECRET", raising=False)
    file = tmp_path / "secret"
    file.write_text(SECRET)
    good("sources", "add", "a", "--provider", "github", "--secret", f"file:{file}")
    later = good("sources", "add", "b", "--provider", "github", "--secret", "env:GIT_SECRET")
    assert "env:GIT_SECRET is not set here" in later
    assert [s["secrets"][0]["kept"] for s in listed()] == [  # type: ignore[index]
        f"file:{file}",
        "env:GIT_SECRET",
    ]
    done = run("sources", "add", "c", "--provider", "github", "--secret", f"file:{tmp_path}/no")
    assert done.exit_code == 2
    assert "a readable file" in done.output


def test_rotate_keeps_the_old_one_for_a_while() -> None:
    good("sources", "add", "git", "--provider", "github", stdin="old-secret")
    said = good("sources", "rotate", "git", "--key-id", "second", "--keep", "2h", stdin="new")
    assert said == "git accepts second now; 1 older for 2h more.\n"
    (source,) = listed()
    keys = source["secrets"]
    assert isinstance(keys, list)
    assert [key["key_id"] == "second" for key in keys] == [True, False]
    assert [key["not_after"] is None for key in keys] == [True, False]


def test_disable_enable_remove() -> None:
    good("sources", "add", "git", "--provider", "github", stdin=SECRET)
    assert "503" in good("sources", "disable", "git")
    assert "disabled" in good("sources", "list")
    good("sources", "enable", "git")
    assert run("sources", "remove", "git", stdin="n\n").exit_code == 1
    assert len(listed()) == 1
    good("sources", "remove", "git", "--yes")
    assert listed() == []


def test_unknown_names_have_a_hint() -> None:
    good("sources", "add", "git", "--provider", "github", stdin=SECRET)
    for arguments in (
        ("sources", "disable", "gti"),
        ("sources", "rotate", "gti", "--secret", "env:HOME"),
        ("sources", "remove", "gti", "--yes"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2
        assert "did you mean 'git'" in done.output
        assert len(done.output.splitlines()) == 1
    done = run("sources", "add", "x", "--provider", "gihub", stdin="x")
    assert "did you mean 'github'" in done.output


def captured(sent: Sent) -> list[str]:
    return [part for pair in sent.headers.items() for part in ("-H", f"{pair[0]}: {pair[1]}")]


def test_test_says_why(tmp_path: Path) -> None:
    good("sources", "add", "git", "--provider", "github", stdin=SECRET)
    body, headers = tmp_path / "body", tmp_path / "headers"
    body.write_bytes(BODY)
    sent = github_sent(BODY, "d-1")
    headers.write_text("".join(f"{name}: {value}\n" for name, value in sent.headers.items()))
    by_option = good("sources", "test", "git", "--file", str(body), *captured(sent))
    by_file = good("sources", "test", "git", "--file", str(body), "--headers", str(headers))
    assert by_option == by_file
    assert "Genuine, signed with" in by_file
    assert "d-1  push" in by_file
    bad = run("sources", "test", "git", "--file", "-", *captured(sent), stdin=BODY + b"\n")
    assert bad.exit_code == 1
    assert "Not believed: wrong_signature" in bad.output
    assert "a line end was added" in bad.output
    document = run("sources", "test", "git", "--json", "--file", "-", *captured(sent), stdin=b"x")
    assert document.exit_code == 1
    assert json.loads(document.output)["reason"] == "wrong_signature"
    assert run("sources", "test", "git", "--file", "-", "-H", "nonsense").exit_code == 2


@pytest.mark.parametrize("at", [f"{AT:.0f}", "2026-09-21T14:13:20Z", "2026-09-21T14:13:20"])
def test_test_at_a_time(at: str) -> None:
    from tests import senders

    good("sources", "add", "pay", "--provider", "stripe", stdin="whsec_x")
    sent = senders.stripe(BODY, "whsec_x", AT)
    arguments = ("sources", "test", "pay", "--file", "-", *captured(sent))
    assert "Genuine" in good(*arguments, "--at", at, stdin=BODY)
    assert "one of the clocks is wrong" in run(*arguments, stdin=BODY).output
    assert run(*arguments, "--at", "noon", stdin=BODY).exit_code == 2


@pytest.fixture
def taken(url: str) -> None:
    """Three events of two sources, one of them twice."""
    with Store(url) as store:
        sources = [Source(name, provider="github", secrets=[SECRET]) for name in ("git", "other")]
        app = Intake(store, sources)
        for source, body, event_id in (
            ("git", BODY, "d-1"),
            ("git", b"\xff\x00", "d-2"),
            ("other", b"{}", "d-1"),
            ("git", BODY, "d-1"),
        ):
            assert post(app, source, github_sent(body, event_id)).status == 200


@pytest.mark.usefixtures("taken")
def test_events() -> None:
    rows = json.loads(good("events", "ls", "--json"))
    assert [(row["source"], row["event_id"]) for row in rows] == [
        ("other", "d-1"),
        ("git", "d-2"),
        ("git", "d-1"),
    ]
    assert rows[2]["duplicates"] == 1
    assert rows[2]["body_sha256"] == hashlib.sha256(BODY).hexdigest()
    assert "d-2" in good("events", "ls")
    assert len(json.loads(good("events", "ls", "--json", "--source", "git", "-n", "1"))) == 1
    assert json.loads(good("events", "ls", "--json", "--type", "nothing")) == []
    assert len(json.loads(good("events", "ls", "--json", "--since", "1h"))) == 3


@pytest.mark.usefixtures("taken")
def test_show_and_export_give_the_bytes() -> None:
    assert '{"text": "10 €, 🎉"}' in good("events", "show", "git", "d-1")
    shown = CliRunner().invoke(root, ["events", "show", "git", "d-2", "--body"])
    assert shown.stdout_bytes == b"\xff\x00"
    assert run("events", "show", "git", "none").exit_code == 1
    document = json.loads(good("events", "show", "git", "d-1", "--json"))
    assert document["body"].encode() == BODY
    assert ["X-Github-Event", "push"] in document["headers"]
    lines = [json.loads(line) for line in good("events", "export").splitlines()]
    assert [line["seq"] for line in lines] == sorted(line["seq"] for line in lines)
    assert lines[1]["body_base64"] == "/wA="
    assert len(good("events", "export", "--source", "other").splitlines()) == 1
