"""What runs the documentation sees what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import page as runner
from tests.docs.markdown import ROOT, anchors, blocks, inline_code, links
from tests.docs.output import matches
from tests.docs.page import Page

PORTS = {"8000": "40001"}


def run(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "ROOT", folder)
    file = folder / "page.md"
    file.write_text(text)
    with Page(file, folder) as page:
        page.run()


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("```\nx\n```", "nobody knows"),
        ("```ini\nx = 1\n```", "nobody knows"),
        ("```yaml\nroute: {receiver: none}\n```", "undefined receiver"),
        ("```console\n$ echo a\nb\n```", "documented"),
        ("```console\n$ echo a\n```", "documented"),
        ("```console\nb\n```", "before the first command"),
        ("```console\n$ false\n```", "ended with 1"),
        ("<!-- fails -->\n```console\n$ true\n```", "ended with 0"),
        ("```console\n$ pip install gunicorn-admision\n```", "is not ours"),
        ("```console\n$ pip install 'gunicorn-admission[nothing]'\n```", "is not ours"),
        ("```python\nraise SystemExit(3)\n```", "ended with 3"),
        ("```python\n# app.py\n(\n```", "never closed"),
        ("```toml\n# some.toml\n[gunicorn_admission]\nmax_wiat = 1\n```", "max_wait"),
        ("```toml\n# some.toml\n[\n```", "Invalid"),
        ("```json\n{\n```", "property name"),
        ("```haproxy\nbackend\n```", "backend"),
        ("```nginx\nlocation / { proxy_pas x; }\n```", "proxy_pas"),
        ("```python\nx = 1\n", "has no end"),
        ("text\n\n    indented\n", "use a fenced block"),
    ],
)
def test_wrong_block_is_found(
    block: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "setup.cfg").write_text((ROOT / "setup.cfg").read_text())
    with pytest.raises(Exception) as caught:
        run(block, tmp_path, monkeypatch)
    assert complaint in str(caught.value)


def test_log_line_must_be_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "```console\n$ echo one two &\n```\n```log\n{}\n```\n"
    run(text.format("one ..."), tmp_path, monkeypatch)
    monkeypatch.setattr(runner, "PATIENCE", 0.05)
    with pytest.raises(AssertionError, match="never printed: three") as caught:
        run(text.format("three"), tmp_path, monkeypatch)
    assert "page.md:4" in caught.value.__notes__[0]


def test_files_and_ports_go_into_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        '```python\n# place.py\nADDRESS = "127.0.0.1:8000"\n```\n'
        "```python\nfrom place import ADDRESS\n\nassert not ADDRESS.endswith('8' + '000')\n```\n"
        '```console\n$ python -c "import place; print(place.ADDRESS)" \\\n'
        "    | cat\n127.0.0.1:8000\n```\n"
    )
    run(text, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("a\nb", "a\nb\n", True),
        ("a\nb", "a\n", False),
        ("", "", True),
        ("", "a\n", False),
        ("a ... c", "a b c\n", True),
        ("a ... c", "a b d\n", False),
        ("...\nlast", "one\ntwo\nlast\n", True),
        ("...\nlast", "last\n", True),
        ("...\nlast", "one\nlast\nmore\n", False),
        ("a.c", "abc\n", False),
        ("Retry-After: 2", "Retry-After: 13\r\n", True),
        ("Content-Length: 2", "Content-Length: 13\r\n", False),
        ("at 127.0.0.1:8000", "at 127.0.0.1:40001\n", True),
        ("at 127.0.0.1:8000", "at 127.0.0.1:40002\n", False),
        ("[2026-11-30 21:12:02 +0000] [4695] x", "[2027-01-01 01:01:01 +0000] [7] x", True),
        ("HTTP/1.1 503", "HTTP/1.1 200", False),
    ],
)
def test_output_is_compared(expected: str, actual: str, same: bool) -> None:
    assert matches(expected, actual, PORTS) is same


def test_blocks_are_found_in_lists_and_behind_marks() -> None:
    text = "1. a\n\n   <!-- fails -->\n   ```console\n   $ x\n     y\n   ```\n\n```json\n{}\n```\n"
    assert blocks(text) == [("console", "$ x\n  y\n", 4, "fails"), ("json", "{}\n", 9, "")]


def test_links_code_and_anchors() -> None:
    text = (
        "# What's `new` here?\n## Same\n## Same\n"
        "[a](b.md#c) ![p](q.svg) [![i](j.png)](k) `[no](link)` `x=1`\n"
        "```text\n[no](no)\n# No\n```\n"
    )
    assert sorted(links(text)) == ["b.md#c", "j.png", "k", "q.svg"]
    assert list(inline_code(text)) == ["new", "[no](link)", "x=1"]
    assert anchors(text) == {"whats-new-here", "same", "same-1"}
