"""The extension: one object for any number of applications."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen
from flask import Flask, current_app, has_app_context

from flask_ext.cli import commands
from flask_ext.config import OWN, load_settings
from flask_ext.decorators import Decorators
from flask_ext.dependency import Dependencies, Dependency
from flask_ext.guard import Guard
from flask_ext.refusal import handle_rejections
from gunicorn_admission.core.statistics import Statistics
from gunicorn_admission.core.types import Priority
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import DurationLike, locate

__all__ = ["Admission", "AppStatistics"]

_KEY: Final = "admission"
_GUARD: Final = "gunicorn_admission.guard"


@frozen(kw_only=True)
class AppStatistics:
    """
    What an application's limiters do in this process.

    Attributes:
        requests: Of the gate in front of it; ``None`` before the first request and when off.
        dependencies: Of each dependency, by name.
    """

    requests: Statistics | None
    dependencies: Mapping[str, Statistics]


class Admission(Decorators):
    """
    Admission control for Flask applications.

    Under gunicorn with :mod:`gunicorn_admission.hooks` it tells the server's gate what the
    decorators say, and never takes a second slot. Under other threaded servers it is the gate.

    Args:
        app: The application; without one, call :meth:`init_app`.
        mount: See :meth:`init_app`.
        settings: Fields of :class:`~gunicorn_admission.settings.Settings`. They beat
            ``ADMISSION_*`` in ``app.config``, which beats the environment
            ``GUNICORN_ADMISSION_*``, which beats a TOML file.

    Raises:
        ConfigError: A setting is unknown or cannot work.

    Example:
        ``admission = Admission(app, routes={"/analytics": "low"})``
    """

    def __init__(self, app: Flask | None = None, *, mount: str = "", **settings: Any) -> None:
        self._settings = settings
        self._mount = mount
        self._apps: weakref.WeakSet[Flask] = weakref.WeakSet()
        self._dependencies = Dependencies()
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask, *, mount: str | None = None, **settings: Any) -> None:
        """
        Put an application under admission control.

        ``app.config`` is read now; views may be added later, until the first request. Doing it
        again with the same settings changes nothing.

        Args:
            app: The application.
            mount: Path below which another WSGI application in the same process mounts this
                one, such as ``"/api"``. Without it, views of a mounted application are
                classified after the routing only.
            settings: Over those of the constructor.

        Raises:
            ConfigError: A setting is unknown or cannot work, or the application is under
                another admission control already.
        """
        mount = _checked(self._mount if mount is None else mount)
        loaded, sources = load_settings({**self._settings, **settings}, app.config)
        # Sizes in the environment may be meant for gunicorn, where more of them fit.
        if loaded.threads is not None and sources["threads"].kind in OWN:
            try:
                loaded.derive(loaded.threads, waiting_holds_thread=True)
            except ConfigError as error:
                raise locate(error, sources) from None
        guard = app.extensions.get(_GUARD)
        if isinstance(guard, Guard):
            if app.extensions[_KEY] is self and (guard.settings, guard.mount) == (loaded, mount):
                return
            raise ConfigError(
                "init_app", app.name, "an application without admission control",
                "it has one with other settings; make one Admission and say everything once",
            )  # fmt: skip
        app.extensions[_GUARD] = Guard(app, loaded, sources, mount)
        app.extensions[_KEY] = self
        self._apps.add(app)
        self._dependencies.set_mode(loaded.mode)
        handle_rejections(app, loaded.shed_status)
        app.cli.add_command(commands)

    def dependency(
        self,
        name: str,
        *,
        cap: int | None = None,
        timeout: DurationLike | None = None,
        priority: Priority | str | None = None,
    ) -> Dependency:
        """
        Bound the calls of something that the application depends on.

        Use it as ``with admission.dependency("postgres"):`` or as a decorator, around
        blocking code. How many calls it lets through follows how they go, up to ``cap``; a
        driver's timeout counts as overload. All applications of this object share it; it
        refuses nothing where the last of them has the mode ``monitor`` or ``off``.

        Args:
            name: What is called; the same name is the same bulkhead.
            cap: Most calls at once, for example the size of the pool. Say it where the name
                is first used; 64 if nowhere.
            timeout: Longest wait for a slot, such as ``"100ms"`` or seconds; 0 does not wait.
                By default up to 0.5 s, less in overload.
            priority: By default that of the request, or else the middle one.

        Raises:
            ConfigError: A value cannot work, or the name has another cap.
        """
        return self._dependencies.get(name, cap, timeout, priority)

    def statistics(self, app: Flask | None = None) -> AppStatistics:
        """
        Return what the limiters do, in this process only.

        Args:
            app: By default the current application, or the only one.
        """
        if app is None:
            if has_app_context():
                app = current_app._get_current_object()  # type: ignore[attr-defined]
            elif len(self._apps) == 1:
                app = next(iter(self._apps))
        guard = app.extensions.get(_GUARD) if app is not None else None
        limiter = guard.limiter() if isinstance(guard, Guard) else None
        return AppStatistics(
            requests=None if limiter is None else limiter.statistics(),
            dependencies=self._dependencies.statistics(),
        )


def _checked(mount: str) -> str:
    if mount and (not mount.startswith("/") or mount.endswith("/") or "//" in mount):
        raise ConfigError(
            "mount", mount, "a path such as '/api'", "one slash in front, none behind"
        )
    return mount
