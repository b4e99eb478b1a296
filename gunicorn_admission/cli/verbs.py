"""The verbs, put together; a setting that cannot work is wrong usage."""

from __future__ import annotations

import sys
from typing import Any

import click

from gunicorn_admission.cli.config import config
from gunicorn_admission.cli.simulate import simulate
from gunicorn_admission.errors import ConfigError

__all__ = ["root"]


class _Root(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ConfigError as error:
            click.echo(f"gunicorn-admission: {error}", err=True)
            sys.exit(2)


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

    Exit codes: 0 all is well, 1 something was found, 2 wrong usage.
    """


root.add_command(config)
root.add_command(simulate)
