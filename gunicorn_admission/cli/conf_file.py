"""Runs a user's ``gunicorn.conf.py`` to see what it says."""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.hooks import install

__all__ = ["run_conf"]


def run_conf(conf: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """
    Return the names of a gunicorn configuration, and the keywords of ``install`` in it.

    Raises:
        ConfigError: A setting of admission in it cannot work.
        ClickException: It cannot be run.
    """
    try:
        names = runpy.run_path(str(conf))
    except ConfigError:
        raise
    except Exception as error:
        raise click.ClickException(f"{conf} cannot be run: {error!r}") from error
    return names, install(names).keywords
