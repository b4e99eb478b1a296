"""Tables that are made from the code are current, and none is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.generated import current, places
from tests.docs.markdown import ROOT, name, pages

PLACES = [(page, table, text) for page in pages() for table, text in places(page)]


@pytest.mark.parametrize(
    ("page", "table", "text"), PLACES, ids=[f"{name(page)}: {table}" for page, table, _ in PLACES]
)
def test_table_is_current(page: Path, table: str, text: str) -> None:
    assert text == current(table), "run: python -m tests.docs.generated"


def test_tables_stand_where_they_are_looked_for() -> None:
    assert {(name(page), table) for page, table, _ in PLACES} == {
        ("README.md", "settings"),
        ("docs/reference/settings.md", "settings"),
        ("docs/reference/metrics.md", "metrics"),
        ("docs/reference/answer.md", "reasons"),
        ("docs/reference/metrics.md", "webhook metrics"),
        ("docs/reference/webhook-answers.md", "webhook answers"),
        ("docs/reference/webhook-answers.md", "refusal reasons"),
        ("docs/reference/webhook-senders.md", "webhook senders"),
        ("docs/reference/webhook-senders.md", "notes on senders"),
        ("docs/how-to/health-checks.md", "exempt paths"),
        ("docs/reference/command.md", "options of config"),
        ("docs/reference/command.md", "options of simulate"),
        ("docs/reference/command.md", "options of tune"),
        ("docs/reference/gate.md", "options of gate show"),
        ("docs/reference/gate.md", "options of gate set"),
        ("docs/reference/gate.md", "options of gate release"),
        ("docs/reference/gate.md", "options of gate approve"),
        ("docs/reference/gate.md", "options of gate audit"),
        ("docs/reference/gate.md", "options of gate reconcile"),
        ("docs/reference/tables.md", "tables"),
        ("docs/reference/webhook-commands.md", "options of subscriptions create"),
        ("docs/reference/webhook-commands.md", "options of deliveries ls"),
        ("docs/reference/webhook-commands.md", "options of deliveries replay"),
        ("docs/reference/webhook-commands.md", "options of dead-letters redrive"),
        ("docs/reference/webhook-commands.md", "options of worker"),
    }


def test_the_demo_has_one_set_of_figures() -> None:
    def figures(page: Path) -> list[str]:
        lines = page.read_text("utf-8").splitlines()
        first = lines.index("| | plain | admission |")
        return lines[first : lines.index("", first)]

    assert figures(ROOT / "README.md") == figures(ROOT / "examples" / "blocked_db" / "README.md")
