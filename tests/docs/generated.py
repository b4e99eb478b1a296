"""
Tables in the documentation that are made from the code.

``python -m tests.docs.generated`` writes them anew; a test checks that they are current.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import click

from gunicorn_admission.answer import answer
from gunicorn_admission.cli.verbs import root
from gunicorn_admission.core.types import Reason
from gunicorn_admission.observe.metric import Metric
from gunicorn_admission.observe.names import METRICS
from gunicorn_admission.settings.describe import markdown_table
from gunicorn_admission.settings.schema import EXEMPT_DEFAULTS
from gunicorn_admission.webhooks.intake.answer import Result, challenge
from gunicorn_admission.webhooks.intake.answer import answer as webhook_answer
from gunicorn_admission.webhooks.metrics import CATALOGUE, WebhookMetric
from gunicorn_admission.webhooks.providers import Facts, load_provider, provider_names
from gunicorn_admission.webhooks.providers import Reason as Refused
from tests.docs.markdown import ROOT, pages
from tests.docs.tables import tables_page

__all__ = ["current", "places"]

_PLACE = re.compile(r"<!-- generated: ([\w -]+?) -->\n(.*?)<!-- end -->\n", re.DOTALL)


def _metrics() -> str:
    return _metric_table((metric.statsd_name, metric) for metric in METRICS)


def _metric_table(metrics: Iterable[tuple[str, Metric | WebhookMetric]]) -> str:
    """A row for each metric, beside its name on statsd."""
    lines = [
        "| statsd | kind | unit | labels | what it says | Prometheus |",
        "|---|---|---|---|---|---|",
    ]
    for name, metric in metrics:
        unit = metric.unit.strip("{}")
        cells = (
            f"`{name}`",
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


def _webhook_answers() -> str:
    meanings = {
        Result.STORED: "at least one event of it is new, and all are in the store",
        Result.DUPLICATE: "all of its events were in the store",
        Result.CHALLENGE: "a question of the sender's, with its answer",
        Result.EMPTY: "genuine, and an empty batch",
        Result.REFUSED: "the signature is not good, or too old",
        Result.UNKNOWN: "no such source; its body is not read",
        Result.METHOD: "not a POST",
        Result.TOO_LARGE: "more than the source may send",
        Result.INCOMPLETE: "the body did not come whole, or something read it before",
        Result.DISABLED: "an operator switched the source off",
        Result.UNVERIFIABLE: "we lack what it takes to verify it",
        Result.LATE: "not committed within the sender's deadline",
        Result.UNAVAILABLE: "the store cannot be reached",
        Result.ERROR: "a bug of ours; the log names it",
    }
    lines = ["| outcome | status | when |", "|---|---|---|"]
    for result in Result:
        made = challenge("x") if result is Result.CHALLENGE else webhook_answer(result, 10)
        lines.append(f"| `{result.value}` | {made.status} | {meanings[result]} |")
    return "\n".join(lines) + "\n"


def _refusal_reasons() -> str:
    names = [*(reason.value for reason in Refused), "nonce_reused"]
    return "".join(f"- `{name}`\n" for name in names)


def _webhook_metrics() -> str:
    return _metric_table((metric.statsd(), metric) for metric in CATALOGUE)


def _senders() -> Iterator[Facts]:
    return (load_provider(name).facts for name in provider_names())


def _webhook_senders() -> str:
    lines = [
        "| sender | deadline | retries | Retry-After | id | signs | gives up | fetch again "
        "| checked |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for facts in _senders():
        values = {
            "deadline": _duration(facts.deadline),
            "retries": _retries(facts),
            "respects_retry_after": {True: "yes", False: "no", None: ""}[
                facts.respects_retry_after
            ],
            "event_id": _event_id(facts),
            "covers": facts.covers.value.replace("_and_", " + "),
            "disable": facts.disable.rule if facts.disable else "",
            "redelivery": _redelivery(facts),
        }
        cells = [
            f"{value}?" if name in facts.unsure and value else value
            for name, value in values.items()
        ]
        about = f"[{facts.title}]({facts.docs}) `{facts.name}`"
        line = " | ".join([about, *cells, facts.checked.isoformat()])
        lines.append(f"| {line} |".replace("|  |", "| |").replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def _retries(facts: Facts) -> str:
    retries = facts.retries
    if retries.count == 0:
        return "none"
    many = "" if retries.count is None else f"{retries.count}"
    span = "" if retries.span is None else f"over {_duration(retries.span)}"
    return " ".join(part for part in (many, span) if part)


def _event_id(facts: Facts) -> str:
    at = facts.event_id
    return "" if at is None else f"`{at.header or at.body}`"


def _redelivery(facts: Facts) -> str:
    found = facts.redelivery
    if found is None:
        return ""
    how = "resend" if found.resend else "list"
    return how if found.window is None else f"{how}, {_duration(found.window)} back"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size or seconds == size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _notes() -> str:
    paragraphs = []
    for facts in _senders():
        retries = f"Retried: {facts.retries.after}."
        calls = []
        if facts.redelivery is not None:
            wanted = (facts.redelivery.listing, facts.redelivery.resend)
            calls = [f"`{call}`" for call in wanted if call]
        fetch = f" Fetch again: {', '.join(calls)}." if calls else ""
        paragraphs.append(f"**{facts.title}.** {retries}{fetch} {' '.join(facts.notes)}".strip())
    return "\n\n".join(paragraphs) + "\n"


#: Verbs whose options stand in a page, as they are typed.
_VERBS = (
    "config",
    "simulate",
    "tune",
    "subscriptions create",
    "deliveries ls",
    "deliveries replay",
    "dead-letters redrive",
    "worker",
    "gate show",
    "gate set",
    "gate release",
    "gate approve",
    "gate audit",
    "gate reconcile",
)


def _options(verb: str) -> str:
    lines = ["| option | what it does | default |", "|---|---|---|"]
    command: click.Command | None = root
    for word in verb.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    for one in command.params:
        if not isinstance(one, click.Option):
            continue
        names = ", ".join(one.opts)
        if not one.is_flag:
            names += f" {one.metavar or one.type.name.upper()}"
        shown = one.show_default
        default = shown if isinstance(shown, str) else str(one.default) if shown else ""
        cells = (f"`{names}`", one.help or "", default)
        escaped = (cell.replace("|", "\\|") for cell in cells)
        lines.append(f"| {' | '.join(escaped)} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


_TABLES: Mapping[str, Callable[[], str]] = {
    "settings": markdown_table,
    "metrics": _metrics,
    "reasons": _reasons,
    "exempt paths": _exempt,
    "webhook answers": _webhook_answers,
    "refusal reasons": _refusal_reasons,
    "webhook metrics": _webhook_metrics,
    "webhook senders": _webhook_senders,
    "notes on senders": _notes,
    **{f"options of {verb}": partial(_options, verb) for verb in _VERBS},
    "tables": tables_page,
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
