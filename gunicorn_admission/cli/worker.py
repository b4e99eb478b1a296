"""``gunicorn-admission worker``: run consumers."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import click

from gunicorn_admission.cli.store_option import store_option
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import parse_duration
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.webhooks.fanout.consumers import Consumers
from gunicorn_admission.webhooks.fanout.processes import supervise
from gunicorn_admission.webhooks.fanout.tally import Gauges, count_outcome
from gunicorn_admission.webhooks.fanout.worker import Worker
from gunicorn_admission.webhooks.pages import Pager, choose_channels
from gunicorn_admission.webhooks.reporting import start_webhook_reporting
from gunicorn_admission.webhooks.store import Store

__all__ = ["find_consumers", "worker"]


@click.command()
@store_option
@click.option(
    "--app",
    required=True,
    metavar="MODULE:NAME",
    help="Where the consumers are registered: a Consumers, or what has one as .consumers.",
)
@click.option("--consumer", "names", multiple=True, help="Only this one; may be repeated.")
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    help="Handlers at once for each consumer. Default: the consumer's own concurrency.",
)
@click.option(
    "--processes", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes."
)
@click.option(
    "--grace", default="30s", show_default=True, help="How long handlers may take to end at a stop."
)
@click.option(
    "--poll", default="1s", show_default=True, help="Longest pause between looks for work."
)
@click.option(
    "--page",
    "channels",
    multiple=True,
    default=("log",),
    show_default="log",
    help="Whom to tell of pages: log, webhook:URL, alertmanager:URL, command:WORDS. Repeatable.",
)
@click.option("-v", "--verbose", is_flag=True, help="Also log each completed delivery.")
def worker(
    store: Store,
    app: str,
    names: tuple[str, ...],
    threads: int | None,
    processes: int,
    grace: str,
    poll: str,
    channels: tuple[str, ...],
    verbose: bool,
) -> None:
    """Run consumers until SIGTERM or SIGINT.

    Each consumer has threads of its own, so none waits for another. At a stop nothing new is
    claimed, what runs is finished, the rest is handed back. What a killed worker had in hand is
    taken by another when its lease ends. Any number of workers may run, on any number of machines
    that reach the store.

    \b
      gunicorn-admission worker --app shop.webhooks:consumers
      gunicorn-admission worker --app shop.webhooks:consumers --consumer entitlements --threads 8

    Exit codes: 0 stopped in order, 1 something still ran when the grace was over, 2 wrong usage.
    """
    logging.basicConfig(
        format="%(asctime)s [%(process)d] %(levelname)s %(message)s", level=logging.INFO
    )
    if verbose:
        logging.getLogger("gunicorn_admission.fanout").setLevel(logging.DEBUG)
    choose_channels(channels)  # a mistake is told before anything runs
    patience, pause = parse_duration(grace, "grace"), parse_duration(poll, "poll")

    def work(parent: int | None = None) -> int:
        try:
            chosen = Worker(
                store, find_consumers(app), names=names, threads=threads, poll=pause,
                observe=count_outcome,
            )  # fmt: skip
            chosen.check()
        except ConfigError as error:
            click.echo(f"gunicorn-admission: {error}", err=True)
            return 2
        with _Surroundings(store, channels):
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, _stopper(chosen))
            if parent is not None:  # Ctrl-C reaches it too, and it tells us by SIGTERM
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            return 0 if chosen.run(patience, lambda: parent in (None, os.getppid())) else 1

    if processes == 1:
        sys.exit(work())
    parent = os.getpid()
    sys.exit(supervise(processes, lambda: work(parent), grace=patience + 5.0))


def find_consumers(app: str) -> Consumers:
    """
    Import the registry that ``module:name`` names.

    Raises:
        ConfigError: There is no such module or name, or it is something else.
    """
    module_name, _, name = app.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # one that the module itself wants
        raise ConfigError(
            "app",
            app,
            "MODULE:NAME",
            f"there is no module {error.name} in {os.getcwd()} or sys.path",
        ) from None
    found: Any = getattr(module, name or "consumers", None)
    if found is None:
        hint = did_you_mean(name or "consumers", [n for n in vars(module) if not n.startswith("_")])
        raise ConfigError("app", app, f"a name in {module_name}", hint)
    registry = found if isinstance(found, Consumers) else getattr(found, "consumers", None)
    if not isinstance(registry, Consumers):
        raise ConfigError(
            "app", app, "a Consumers, or what has one as .consumers",
            f"it is a {type(found).__name__}",
        )  # fmt: skip
    return registry


class _Surroundings:
    """Metrics and pages beside the worker, for as long as it runs."""

    def __init__(self, store: Store, channels: tuple[str, ...]) -> None:
        self._stop = threading.Event()
        pager, gauges = Pager(store, choose_channels(channels)), Gauges(store)
        self._threads = [
            threading.Thread(target=target, args=(self._stop,), name=name, daemon=True)
            for name, target in (("pager", pager.run), ("gauges", gauges.run))
        ]

    def __enter__(self) -> None:
        self._reporting = start_webhook_reporting()
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._reporting.stop()
        for thread in self._threads:
            thread.join(5.0)


def _stopper(running: Worker) -> Callable[[int, object], None]:
    asked = threading.Event()

    def stop(number: int, frame: object) -> None:
        if asked.is_set():  # asked twice: at once; leases end by themselves
            os._exit(1)
        asked.set()
        # Not here: the signal may have come while this thread holds a loop's lock.
        threading.Thread(target=running.stop, daemon=True).start()

    return stop
