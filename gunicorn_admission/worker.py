"""
``-k gunicorn_admission.worker.AdmissionWorker``: the threaded worker with admission in it.

The same as ``gunicorn_admission.hooks.install`` on gthread, without a line in the
configuration: settings come from ``admission_*`` names of the configuration, from the
environment and from a TOML file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from gunicorn_admission.chaining import COMPOSERS, MARK
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.gthread import install
from gunicorn_admission.scoreboard import board
from gunicorn_admission.settings import Settings, load

__all__ = ["AdmissionWorker"]


class AdmissionWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn is not typed
    """
    gthread that decides, before a thread is spent, whether a request may have one.

    A setting that cannot work is logged, and the worker serves without admission: the
    configuration was valid for gunicorn, and a site that is up beats one that is not.
    With ``hooks.install`` in the configuration too, whichever comes first installs.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """In the master, just before the fork: take a place on the page that workers share."""
        super().__init__(*args, **kwargs)
        try:
            classes = _settings(self.cfg).node_classes
        except ConfigError:
            classes = ()  # said by ``run``, in the worker
        board().seat(self, classes)
        _follow(self.cfg)

    def run(self) -> None:
        """Install, then serve."""
        try:
            installed = install(self, _settings(self.cfg))
        except ConfigError as error:
            self.log.error("admission: %s. Requests are served without admission", error)
            installed = None
        try:
            super().run()
        finally:
            if installed is not None:
                installed.stop()


def _follow(cfg: Any) -> None:
    """Hear in the master of workers that end, where no ``hooks.install`` sees to it."""
    for name, ours in (
        ("child_exit", board().left),
        ("nworkers_changed", board().count_changed),
    ):
        theirs = getattr(cfg, name)
        if not hasattr(theirs, MARK):
            hook = COMPOSERS[name](theirs, ours)
            setattr(hook, MARK, ours)
            cfg.set(name, hook)


def _settings(cfg: Any) -> Settings:
    """
    Read the settings as this configuration has them.

    gunicorn executes a configuration file as the module ``__config__``; a ``python:``
    configuration is an ordinary module.

    Raises:
        ConfigError: A setting is unknown or invalid.
    """
    name = str(cfg.config or "")
    module = sys.modules.get(name[7:] if name.startswith("python:") else "__config__")
    conf: Mapping[str, Any] = vars(module) if module is not None else {}
    return load({}, conf=conf, environ=os.environ)[0]
