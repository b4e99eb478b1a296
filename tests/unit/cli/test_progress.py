"""The bar of long runs."""

from __future__ import annotations

import io
from functools import partial

import pytest
from rich.console import Console

from gunicorn_admission.cli import progress


def shown(
    monkeypatch: pytest.MonkeyPatch, *, terminal: bool, wanted: bool = True
) -> tuple[str, str]:
    """What a bar of two steps writes, and its last picture."""
    stream = io.StringIO()
    made = partial(Console, file=stream, force_terminal=terminal, width=80, color_system=None)
    monkeypatch.setattr(progress, "Console", lambda stderr: made())
    with progress.bar("storm", 2, wanted=wanted) as done:
        done()
        done()
    return stream.getvalue(), stream.getvalue().rpartition("storm")[2]


def test_a_terminal_sees_it_and_is_left_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    everything, last = shown(monkeypatch, terminal=True)
    assert "storm" in everything
    assert "2/2" in last
    assert everything.endswith("\x1b[2K")  # the line is erased at the end


@pytest.mark.parametrize(("terminal", "wanted"), [(False, True), (True, False)])
def test_nobody_else_sees_anything(
    terminal: bool, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(monkeypatch, terminal=terminal, wanted=wanted) == ("", "")


def test_it_is_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.bar("storm", 1) as done:
        done()
    assert capsys.readouterr() == ("", "")
