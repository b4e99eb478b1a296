"""
Tables in the documentation that are made from the code.

``python -m tests.docs.generated`` writes them anew; a test checks that they are current.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from gunicorn_admission.answer import answer
from gunicorn_admission.core.types import Reason
from gunicorn_admission.observe.names import METRICS
from gunicorn_admission.settings.describe import markdown_table
from gunicorn_admission.settings.schema import EXEMPT_DEFAULTS
from tests.docs.markdown import ROOT, pages

__all__ = ["current", "places"]

_PLACE = re.compile(r"<!-- generated: ([\w ]+) -->\n(.*?)<!-- end -->\n", re.DOTALL)


def _metrics() -> str:
    lines = [
        "| statsd | kind | unit | labels | what it says | Prometheus |",
        "|---|---|---|---|---|---|",
    ]
    for metric in METRICS:
        unit = metric.unit.strip("{}")
        cells = (
            f"`{metric.statsd_name}`",
            metric.kind.value,
            {"seconds": "ms", "1": ""}.get(unit, unit),
            ", ".join(metric.labels),
            metric.help,
            f"`{metric.prometheus_name}`",
        )
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def _reasons() -> str:
    lines = ["| `Admission-Reason` | detail in the body |", "|---|---|"]
    for reason in Reason:
        body = answer(reason, 0).body.decode()
        detail = re.search(r'"detail": "(.*?) Retry after', body)
        assert detail is not None
        lines.append(f"| `{reason.value}` | {detail[1]} |")
    return "\n".join(lines) + "\n"


def _exempt() -> str:
    return "".join(f"- `{path}`\n" for path in EXEMPT_DEFAULTS)


_TABLES: Mapping[str, Callable[[], str]] = {
    "settings": markdown_table,
    "metrics": _metrics,
    "reasons": _reasons,
    "exempt paths": _exempt,
}


def places(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the present text of each generated part of a page."""
    for match in _PLACE.finditer(page.read_text("utf-8")):
        yield match[1], match[2]


def current(table: str) -> str:
    """Return what should stand there, between blank lines."""
    return f"\n{_TABLES[table]()}\n"


def _write() -> None:
    for page in pages():
        text = page.read_text("utf-8")
        fresh = _PLACE.sub(
            lambda match: f"<!-- generated: {match[1]} -->\n{current(match[1])}<!-- end -->\n", text
        )
        if fresh != text:
            page.write_text(fresh, "utf-8")
            print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    _write()
