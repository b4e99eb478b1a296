"""
``install(globals())``: the last line of a ``gunicorn.conf.py``.

It puts our server hooks behind the ones that the configuration already has (see
``chaining.py``). What ours raises is logged and goes no further, since a bug here must not
take the site down.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final

from gunicorn.config import make_settings

from gunicorn_admission.chaining import COMPOSERS, MARK, Hook
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.scoreboard import board
from gunicorn_admission.settings import Settings, load
from gunicorn_admission.settings.load import DEFAULT_FILE, ENVIRONMENT_PREFIX

if TYPE_CHECKING:
    from gunicorn_admission.gthread import Installed

__all__ = ["Installation", "install"]

_FILE: Final = ENVIRONMENT_PREFIX + "FILE"
_CONF_MODULE: Final = "gunicorn_admission.conf"


def install(namespace: MutableMapping[str, Any], /, **settings: Any) -> Installation:
    """
    Put admission control into a gunicorn configuration.

    Call it on the last line, for example ``install(globals(), routes={"/pay": "high"})``.
    Settings come from the keywords, then from ``admission_*`` names of the configuration,
    then from the environment and a TOML file. They are validated at once, so that
    ``gunicorn --check-config`` fails on a bad one, and read again in each new worker,
    which sees ``raw_env`` too.

    A second call without settings, or with the same, changes nothing but takes back hooks
    that were defined since. Other settings are refused rather than merged: two places
    that each say half of the truth are a trap.

    Args:
        namespace: The globals of the configuration; hooks are replaced in it.
        settings: Fields of :class:`~gunicorn_admission.settings.Settings`.

    Returns:
        What was installed; the same object for a second call.

    Raises:
        ConfigError: A setting is unknown or invalid, or a second call disagrees.
    """
    marks = (getattr(namespace.get(name), MARK, None) for name in COMPOSERS)
    installation = next((mark for mark in marks if isinstance(mark, Installation)), None)
    if installation is None:
        installation = Installation(namespace, settings)
    elif settings and settings != installation.keywords:
        raise ConfigError(
            "install",
            settings,
            "the settings of the first call, or none",
            f"pass everything in one call; the first had {installation.keywords!r}",
        )
    for name, setting in make_settings().items():
        if name in COMPOSERS:
            _chain(namespace, name, setting, installation)
    return installation


def _chain(
    namespace: MutableMapping[str, Any], name: str, setting: Any, installation: Installation
) -> None:
    """Replace one hook of the namespace; gunicorn's own setting reads the user's value."""
    if name in namespace:
        try:
            setting.set(namespace[name])  # resolves dotted strings and fewer parameters
        except TypeError:
            return  # gunicorn will refuse the value in its own words
    namespace[name] = installation.composed(name, setting.get())


class Installation:
    """
    Admission control in one reading of a configuration; a reload makes another.

    It lives in the master and is inherited by the workers it forks. Its methods other
    than :meth:`settings` and :meth:`composed` are our halves of the hooks.

    Args:
        namespace: Where ``admission_*`` names are read, again at each start of a worker.
        keywords: What the user passed to :func:`install`.

    Raises:
        ConfigError: A setting is unknown or invalid.

    Thread safety: configured by the main thread before requests run; ``post_request``
    may run in any number of threads.
    """

    def __init__(self, namespace: Mapping[str, Any], keywords: Mapping[str, Any]) -> None:
        self.keywords: Final = dict(keywords)
        self._namespace = namespace
        self._directory = os.getcwd()
        self._valid = self.settings()
        self._installed: Installed | None = None  # set in a worker, never in the master
        self._finish: Hook | None = None
        self._complained: set[str] = set()

    def settings(self) -> Settings:
        """
        Read and validate the settings as they are now.

        Files are looked for where gunicorn was started, since its ``chdir`` may have
        moved the process between two readings.

        Raises:
            ConfigError: A setting is unknown or invalid.
        """
        environ = dict(os.environ)
        file = environ.get(_FILE) or DEFAULT_FILE
        path = os.path.join(self._directory, file)
        if file != DEFAULT_FILE or os.path.isfile(path):
            environ[_FILE] = path
        return load(self.keywords, conf=self._namespace, environ=environ)[0]

    def composed(self, name: str, theirs: Hook) -> Hook:
        """A hook that runs theirs and then ours; theirs itself when it does so already."""
        if getattr(theirs, MARK, None) is self:
            return theirs
        ours = getattr(self, name)

        def contained(*args: Any) -> None:
            try:
                ours(*args)
            except Exception as error:
                self._complain(name, error, args[0].log)

        hook = COMPOSERS[name](theirs, contained)
        hook.__name__ = name
        setattr(hook, MARK, self)
        return hook

    def _complain(self, name: str, error: Exception, log: Any) -> None:
        """Log an exception of ours, once a hook, since post_request runs for each request."""
        if name in self._complained:
            return
        self._complained.add(name)
        if isinstance(error, ConfigError):
            log.error("admission: %s. Requests are served without admission", error)
        else:
            log.exception("admission: %s failed, requests are served without it", name)

    def on_starting(self, server: Any) -> None:
        """Last check in the master, which knows ``raw_env`` and the threads: refuse to start."""
        try:
            self._check(server)
        except ConfigError as error:
            server.log.error("admission: %s", error)
            sys.exit(1)
        self._look_after(server)

    def on_reload(self, server: Any) -> None:
        """The same after a HUP, but the site is up and stays up."""
        try:
            self._check(server)
        except ConfigError as error:
            server.log.error("admission: %s", error)
        self._look_after(server)

    def _check(self, server: Any) -> None:
        self._valid = self.settings()
        if self._valid.mode != "off" and hasattr(server.worker_class, "get_thread_pool"):
            threads = self._valid.threads or server.cfg.threads
            self._valid.derive(threads, waiting_holds_thread=False)

    def _look_after(self, server: Any) -> None:
        # gunicorn imports a `python:` configuration once; forget ours, so that the next
        # HUP reads the user's file again, as gunicorn does with a file.
        sys.modules.pop(_CONF_MODULE, None)
        for name in COMPOSERS:
            theirs = getattr(server.cfg, name)
            ours = self.composed(name, theirs)
            if ours is not theirs:
                server.cfg.set(name, ours)
                server.log.warning(
                    "admission: the configuration defines %s after install(globals()), "
                    "which hid ours; chained again. Make install(...) its last line",
                    name,
                )

    def pre_fork(self, server: Any, worker: Any) -> None:
        """Give the worker the lowest free place; what was counted there goes on."""
        try:
            settings = self.settings()
        except ConfigError:
            settings = self._valid  # the worker says what is wrong
        board().seat(worker, settings.node_classes)

    def child_exit(self, server: Any, worker: Any) -> None:
        """Strike out what a worker held; this runs in the master, also after a SIGKILL."""
        board().left(server, worker)

    def nworkers_changed(self, server: Any, new_value: int, old_value: int | None) -> None:
        """Notice when the master makes the worker that one of ours has asked for."""
        board().count_changed(server, new_value, old_value)

    def post_worker_init(self, worker: Any) -> None:
        """Install into the worker: its application is loaded, its threads do not run yet."""
        # Here and not at the top: the master may have to be patched by gevent first.
        from gunicorn_admission import gthread

        try:
            settings = self.settings()
        except ConfigError as error:
            worker.log.error("admission: %s; ignored in this worker", error)
            settings = self._valid
        self._installed = gthread.install(worker, settings)
        # In the executor the slot ends with the thread's work on the connection, whatever
        # happens; and an ASGI worker, where it is off, has no WSGI environ to look into.
        if self._installed.mode in ("gate", "age"):
            self._finish = gthread.finish_request

    def post_request(self, worker: Any, req: Any, environ: dict[str, Any], resp: Any) -> None:
        """Safety net: give back the slot of a request whose response was never closed."""
        if self._finish is not None:
            self._finish(worker, environ)

    def worker_exit(self, server: Any, worker: Any) -> None:
        """Send the last numbers; gunicorn also calls it in the master, for a lost worker."""
        if self._installed is not None:
            self._installed.stop()
