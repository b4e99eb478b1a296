"""``gunicorn-admission config``: every setting, its value, and where that came from."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from gunicorn_admission.cli.conf_file import run_conf
from gunicorn_admission.cli.tables import show
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import Settings, Source, load, locate
from gunicorn_admission.settings.describe import Row, explain
from gunicorn_admission.settings.durations import format_duration

__all__ = ["config"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "-c", "--conf", type=_FILE, help="A gunicorn.conf.py to take settings from; it is run."
)
@click.option(
    "--toml", "toml", type=_FILE, help="A TOML file in place of ./gunicorn_admission.toml."
)
@click.option(
    "--threads", type=click.IntRange(1), metavar="N", help="Show what follows from so many threads."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def config(conf: Path | None, toml: Path | None, threads: int | None, as_json: bool) -> None:
    """Show every setting, its value, and where that came from.

    Keyword arguments of install() beat names in gunicorn's configuration, which beat the
    environment, which beats a TOML file, which beats the defaults.

    \b
      gunicorn-admission config -c gunicorn.conf.py --threads 64
    """
    names, keywords = ({}, {}) if conf is None else run_conf(conf)
    settings, sources = load(keywords, conf=names, environ=os.environ, toml_path=toml)
    if threads is None:
        threads = settings.threads or _threads(names)
    rows = explain(settings, sources)
    derived = {} if threads is None else _derived(settings, sources, threads)
    if as_json:
        click.echo(json.dumps(_document(rows, threads, derived), indent=2))
        return
    show(_table(rows))
    if derived:
        click.echo(f"\nWith {threads} threads:")
        for name, value in derived.items():
            click.echo(f"  {name:10} {value}")


def _threads(names: Mapping[str, Any]) -> int | None:
    threads = names.get("threads")
    return threads if isinstance(threads, int) and threads > 0 else None


def _derived(settings: Settings, sources: Mapping[str, Source], threads: int) -> dict[str, str]:
    try:
        resolved = settings.derive(threads, waiting_holds_thread=False)
    except ConfigError as error:
        raise locate(error, sources) from None
    policy = resolved.policy
    return {
        "limit": str(resolved.limit),
        "min_limit": str(policy.min_limit),
        "max_limit": str(policy.max_limit),
        "max_queue": str(policy.max_queue),
        "max_wait": format_duration(policy.max_wait_ns / 1e9),
        "cap": "none" if policy.class_cap is None else str(policy.class_cap),
    }


def _table(rows: tuple[Row, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("setting", "value", "from"):
        table.add_column(title, overflow="fold")
    for row in rows:
        style = None if row.source == "default" else "bold"
        table.add_row(row.name, escape(row.value), escape(row.source), style=style)
    return table


def _document(
    rows: tuple[Row, ...], threads: int | None, derived: Mapping[str, str]
) -> dict[str, object]:
    settings = {
        row.name: {"value": row.value, "default": row.default, "source": row.source} for row in rows
    }
    document: dict[str, object] = {"settings": settings}
    if derived:
        document["derived"] = {"threads": threads, **derived}
    return document
