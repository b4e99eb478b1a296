"""``gunicorn-admission tune``: from an access log to settings, and what they are worth."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import click

from gunicorn_admission.cli.conf_file import run_conf
from gunicorn_admission.cli.extras import needs
from gunicorn_admission.cli.progress import bar
from gunicorn_admission.cli.seeds import parse_seeds
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import Settings, load, parse_duration

__all__ = ["tune"]

_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
_THREADS = 32
_PATIENCE = 5.0


@click.command()
@click.option(
    "--access-log",
    "logs",
    type=_FILE,
    multiple=True,
    required=True,
    help="What gunicorn wrote, plain or gzip; - is standard input. Several are read as one.",
)
@click.option("--format", metavar="TEXT", help="The access_log_format that wrote it.")
@click.option(
    "-c",
    "--conf",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A gunicorn.conf.py to take format, threads, workers and settings from; it is run.",
)
@click.option("--threads", type=click.IntRange(1), metavar="N", help="Of a worker.")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="That wrote the log.")
@click.option(
    "--connections", type=click.IntRange(1), metavar="N", help="Calls that are worked on at once."
)
@click.option(
    "--patience",
    metavar="DURATION",
    help="After which clients give up.",
    show_default="5s, or longer where requests take long",
)
@click.option(
    "--partition-by",
    type=click.Choice(["endpoint", "route", "none"]),
    metavar="endpoint|route|none",
    help="How classes form, as the setting.",
    show_default="endpoint",
)
@click.option(
    "--route", "routes", multiple=True, metavar="PATTERN=PRIORITY", help="A rule, as in routes."
)
@click.option(
    "--seeds",
    default="5",
    show_default=True,
    metavar="N|N,N,...",
    help="How many resamples, or which.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Processes; all cores unless said otherwise.",
)
@click.option("--skip-unreadable", "skip", is_flag=True, help="Leave out lines of another form.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def tune(
    logs: tuple[Path, ...],
    format: str | None,
    conf: Path | None,
    threads: int | None,
    workers: int | None,
    connections: int | None,
    patience: str | None,
    partition_by: str | None,
    routes: tuple[str, ...],
    seeds: str,
    jobs: int | None,
    skip: bool,
    as_json: bool,
) -> None:
    """Recommend settings for the traffic of an access log.

    \b
      gunicorn-admission tune --access-log access.log -c gunicorn.conf.py
      zcat access.log.*.gz | gunicorn-admission tune --access-log - --threads 16

    The log must say how long requests took: %(L)s, %(D)s, %(M)s or %(T)s. Its busiest stretch
    is replayed as it was, and with more than the service can do, under several settings.
    """
    with needs("gunicorn-admission tune"):
        from gunicorn_admission.cli.tune_report import document, report
        from gunicorn_admission.sim.tune.access_log import read_logs
        from gunicorn_admission.sim.tune.advise import advise
        from gunicorn_admission.sim.tune.certainty import certainty
        from gunicorn_admission.sim.tune.replay import Deployment
        from gunicorn_admission.sim.tune.windows import observe
    from gunicorn_admission.classify import Classifier

    numbers = parse_seeds(seeds)
    given: dict[str, Any] = {}
    if partition_by is not None:
        given["partition_by"] = partition_by
    if routes:
        given["routes"] = dict(map(_rule, routes))
    names, settings = _configured(conf, given)
    log = read_logs(logs, Classifier(settings), format=format or _format(names), skip=skip)
    traffic = observe(log)
    known = threads or settings.threads or _whole(names, "threads")
    processes = workers or _whole(names, "workers") or log.processes or 1
    deployment = Deployment(
        threads=known or max(_THREADS, ceil(traffic.busiest / processes)),
        workers=processes,
        patience=(
            max(_PATIENCE, 2 * traffic.slowest)
            if patience is None
            else parse_duration(patience, "patience")
        ),
        settings=settings,
    )
    advice = advise(
        traffic,
        deployment,
        numbers,
        connections=connections,
        processes=jobs or os.cpu_count() or 1,
        watch=partial(bar, "replaying"),
    )
    sure = certainty(log, traffic, deployment, advice, threads_given=known is not None)
    if as_json:
        click.echo(json.dumps(document(log, traffic, deployment, advice, sure), indent=2))
    else:
        report(log, traffic, deployment, advice, sure, given)


def _configured(conf: Path | None, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], Settings]:
    """Names of gunicorn's configuration, and the settings with what the options say on top."""
    names, keywords = ({}, {}) if conf is None else run_conf(conf)
    merged = {**keywords, **given}
    if "routes" in keywords and "routes" in given:
        merged["routes"] = {**keywords["routes"], **given["routes"]}
    return names, load(merged, conf=names, environ=os.environ)[0]


def _rule(text: str) -> tuple[str, str]:
    pattern, equals, priority = text.rpartition("=")
    if not equals or not pattern:
        raise ConfigError("route", text, "PATTERN=PRIORITY", "for example --route '/payments=high'")
    return pattern, priority


def _format(names: Mapping[str, Any]) -> str | None:
    text = names.get("access_log_format")
    return text if isinstance(text, str) else None


def _whole(names: Mapping[str, Any], name: str) -> int | None:
    value = names.get(name)
    return value if isinstance(value, int) and value > 0 else None
