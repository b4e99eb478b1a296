"""
The verbs, put together; a setting that cannot work is wrong usage.

Verbs on the store are imported when they are used: they need packages that admission does not.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from gunicorn_admission.cli.config import config
from gunicorn_admission.cli.extras import MissingExtra, needs
from gunicorn_admission.cli.simulate import simulate
from gunicorn_admission.cli.tune import tune
from gunicorn_admission.errors import AdmissionError

__all__ = ["root"]

#: Verb, and the module of this package that has a command of its name.
_ON_STORE = {
    "db": "db",
    "dead-letters": "dead_letters",
    "deliveries": "deliveries",
    "drill": "drill",
    "events": "events",
    "gate": "gate",
    "purge": "purge",
    "shadow": "shadow",
    "sources": "sources",
    "subscriptions": "subscriptions",
    "worker": "worker",
}


class _Root(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_ON_STORE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ON_STORE:
            return super().get_command(ctx, cmd_name)
        try:
            with needs(f"gunicorn-admission {cmd_name}"):
                module = import_module(f"gunicorn_admission.cli.{_ON_STORE[cmd_name]}")
        except MissingExtra as error:
            return _missing(cmd_name, error)
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except AdmissionError as error:
            click.echo(f"gunicorn-admission: {error}", err=True)
            sys.exit(2)


def _missing(verb: str, error: MissingExtra) -> click.Command:
    """Stand in for a verb whose extra is not installed: listed, and says what to install."""

    def fail(**_: object) -> None:
        raise error

    return click.Command(
        verb,
        callback=fail,
        params=[click.Argument(["rest"], nargs=-1)],
        context_settings={"ignore_unknown_options": True},
        add_help_option=False,
        short_help="(not installed)",
    )


@click.group(
    cls=_Root,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="gunicorn-admission")
def root() -> None:
    """Admission control for threaded gunicorn: look at it, and try it out.

    \b
      gunicorn-admission config
      gunicorn-admission simulate --list
      gunicorn-admission simulate yardstick-A --compare adaptive,fixed:10
      gunicorn-admission tune --access-log access.log

    Exit codes: 0 all is well, 1 something was found, 2 wrong usage.
    """


root.add_command(config)
root.add_command(simulate)
root.add_command(tune)
