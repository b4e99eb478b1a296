"""``flask admission``: what the application asks for. It does not look at running workers."""

from __future__ import annotations

import json
from typing import Any

import click
from flask import current_app
from flask.cli import AppGroup

from flask_ext.guard import Guard
from gunicorn_admission.settings import RouteRule

__all__ = ["commands"]

commands = AppGroup("admission", help="Admission control of this application.")


@commands.command("show")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def show(as_json: bool) -> None:
    """Show which rules settings and decorators give to the gate."""
    guard = current_app.extensions["gunicorn_admission.guard"]
    assert isinstance(guard, Guard)
    rows = [_row(rule) for rule in guard.rules()] if guard.settings.mode != "off" else []
    if as_json:
        click.echo(json.dumps({"mode": guard.settings.mode, "rules": rows}, indent=2))
        return
    click.echo(f"mode {guard.settings.mode}; settings of the server come on top\n")
    widths = [max([len(key), *(len(str(row[key])) for row in rows)]) for key in _KEYS]
    for row in [dict(zip(_KEYS, _KEYS, strict=True)), *rows]:
        cells = (str(row[key]).ljust(width) for key, width in zip(_KEYS, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


_KEYS = ("pattern", "methods", "priority", "class", "share", "cap")


def _row(rule: RouteRule) -> dict[str, Any]:
    priority = "exempt" if rule.exempt else "default"
    return {
        "pattern": rule.pattern.text,
        "methods": " ".join(sorted(rule.methods)) if rule.methods else "",
        "priority": rule.priority.name.lower() if rule.priority is not None else priority,
        "class": "" if rule.exempt else rule.class_name,
        "share": rule.share or "",
        "cap": rule.cap or "",
    }
