"""
The sources as an intake has them in memory: from code and from the store, never old for long.

Lock: one ``threading.Lock``, held while they are read anew. Whoever finds them old reads them;
the others go on with what there is, except before the first time.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from attrs import frozen

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.intake.register import load_sources
from gunicorn_admission.webhooks.intake.source import Source
from gunicorn_admission.webhooks.providers import Secret
from gunicorn_admission.webhooks.store import Store

__all__ = ["Ready", "Sources", "StoreUnavailable"]

_log = logging.getLogger("gunicorn_admission.intake")

#: How much longer sources are not read again after the store could not be reached.
_BACKOFF: Final = 3
_STORE: Final = "(store)"  # no source has such a name


class StoreUnavailable(Exception):
    """Whether there is such a source cannot be told: the store was never read."""


@frozen(kw_only=True)
class Ready:
    """
    A source with its secrets at hand.

    Attributes:
        source: What was configured.
        secrets: Those that could be read, as ``verify`` takes them.
        key_ids: What they are called, in the same order.
        whole: Whether all could be read. If not, a signature that none of the others fits may
            be genuine all the same.
    """

    source: Source
    secrets: tuple[Secret, ...]
    key_ids: tuple[str, ...]
    whole: bool


class Sources:
    """
    Finds a source by name.

    Args:
        given: From code; they win over those of the store, and work while it is down.
        store: Has more of them; ``None`` for no others.
        refresh: Seconds after which files, variables and the store are read again.
        changed: Called when they are others than they were.
        monotonic: Seconds.

    Raises:
        ConfigError: Two of those given have one name, or a secret of theirs cannot work.

    Thread safety: all methods may be called from any thread.
    """

    def __init__(
        self,
        given: Iterable[Source],
        store: Store | None,
        *,
        refresh: float = 5.0,
        changed: Callable[[], None] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._given: dict[str, Source] = {}
        for source in given:
            if source.name in self._given:
                raise ConfigError("sources", source.name, "each name once", "rename one")
            for key in source.secrets:
                source.provider.check_secret(key.read())
            self._given[source.name] = source
        self._store = store
        self._refresh = refresh
        self._changed = changed
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._process = 0
        self._due = 0.0
        self._stored: Mapping[str, Source] | None = None
        self._ready: Mapping[str, Ready] = {}
        self._complained: dict[str, str] = {}

    def find(self, name: str) -> Ready | None:
        """
        Return a source as of a few seconds ago at most, or ``None``.

        Raises:
            StoreUnavailable: Code has none of that name, and the store could not be read yet.
        """
        self._freshen()
        found = self._ready.get(name)
        if found is None and self._store is not None and self._stored is None:
            raise StoreUnavailable
        return found

    def knows(self, name: str) -> bool:
        """Whether there was such a source when they were last read."""
        return name in self._ready

    def all(self) -> list[Source]:
        """Return all, as of a few seconds ago at most."""
        self._freshen()
        return [ready.source for ready in self._ready.values()]

    def _freshen(self) -> None:
        first = self._process != os.getpid()  # what a parent had read may be of long ago
        if not first and self._monotonic() < self._due:
            return
        if not self._lock.acquire(blocking=first):
            return
        try:
            if self._process == os.getpid() and self._monotonic() < self._due:
                return
            before = [ready.source for ready in self._ready.values()]
            self._read()
            changed = before != [ready.source for ready in self._ready.values()]
            # A store that is down costs whoever asks it; so it is asked less often.
            pause = self._refresh * (_BACKOFF if _STORE in self._complained else 1)
            self._process, self._due = os.getpid(), self._monotonic() + pause
        finally:
            self._lock.release()
        if changed and self._changed is not None:
            self._changed()

    def _read(self) -> None:
        if self._store is not None:
            try:
                with self._store.read() as connection:
                    found, broken = load_sources(connection)
            except Exception as error:
                self._complain(_STORE, f"sources cannot be read: {_short(error)}")
            else:
                self._complained.pop(_STORE, None)
                self._stored = {source.name: source for source in found}
                for name, problem in broken:
                    self._complain(name, f"source {name!r} is left out: {problem}")
        sources = {**(self._stored or {}), **self._given}
        self._ready = {name: self._prepare(source) for name, source in sources.items()}

    def _prepare(self, source: Source) -> Ready:
        secrets: list[Secret] = []
        key_ids: list[str] = []
        for key in source.secrets:
            about = f"{source.name}/{key.key_id}"
            try:
                secret = key.read()
                source.provider.check_secret(secret)
            except ConfigError as problem:
                self._complain(about, f"source {source.name!r}, secret {key.key_id!r}: {problem}")
                continue
            self._complained.pop(about, None)
            secrets.append(secret)
            key_ids.append(key.key_id)
        return Ready(
            source=source,
            secrets=tuple(secrets),
            key_ids=tuple(key_ids),
            whole=len(secrets) == len(source.secrets),
        )

    def _complain(self, about: str, message: str) -> None:
        """Say each problem once, and again only when it is another one."""
        if self._complained.get(about) != message:
            self._complained[about] = message
            _log.error("webhooks: %s", message)


def _short(error: Exception) -> str:
    text = str(getattr(error, "orig", None) or error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"
