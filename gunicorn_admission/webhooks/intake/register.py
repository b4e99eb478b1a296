"""Sources in the store: what operators add, rotate and switch, each change with its audit row."""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Sequence
from typing import Any, Final

from attrs import frozen
from sqlalchemy import Connection, delete, func, insert, select, update

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.webhooks.intake.source import Key, Source, check_name
from gunicorn_admission.webhooks.store import Store, schema

__all__ = ["Register", "Registered", "load_sources"]

_sources: Final = schema.sources
_secrets: Final = schema.secrets
_audit: Final = schema.audit


@frozen(kw_only=True)
class Registered:
    """
    A row of the store.

    Attributes:
        source: What it says.
        events: How many events of it are stored; ``None`` where that was not asked for.
        last_at: When the last one came, in microseconds since the epoch.
    """

    source: Source
    events: int | None = None
    last_at: int | None = None


def load_sources(connection: Connection) -> tuple[list[Source], list[tuple[str, ConfigError]]]:
    """
    Return all sources of the store, and the names of those that cannot work with the reason.

    A source that cannot work, for example of a sender whose package is not installed, must not
    keep the others from working.
    """
    keys: dict[str, list[Key]] = {}
    # The newest first: that is the current one, and is tried first.
    newest = _secrets.c.created_at.desc(), _secrets.c.key_id.desc()
    for row in connection.execute(select(_secrets).order_by(_secrets.c.source, *newest)):
        not_after = None if row.not_after is None else row.not_after / 1e6
        keys.setdefault(row.source, []).append(
            Key(key_id=row.key_id, value=row.value, not_after=not_after)
        )
    found: list[Source] = []
    broken: list[tuple[str, ConfigError]] = []
    for row in connection.execute(select(_sources).order_by(_sources.c.name)):
        try:
            found.append(_source(row, keys.get(row.name, [])))
        except ConfigError as error:
            broken.append((row.name, error))
    return found, broken


def _source(row: Any, keys: Iterable[Key]) -> Source:
    return Source(
        row.name,
        provider=row.provider,
        secrets=tuple(keys),
        url=row.url or "",
        priority=row.priority,
        deadline=None if row.deadline_us is None else row.deadline_us / 1e6,
        max_body=row.max_body,
        enabled=row.enabled,
    )


class Register:
    """
    The sources of one store, for operators.

    Args:
        store: Where they are.
        actor: Who changes them, for the audit; by default the user of this process.

    Running intakes notice a change within seconds.

    Thread safety: as the store's.
    """

    def __init__(self, store: Store, actor: str | None = None) -> None:
        self._store = store
        self._actor = actor or _user()

    def list(self) -> list[Registered]:
        """Return all sources with what they have sent."""
        with self._store.read() as connection:
            sources, broken = load_sources(connection)
            counts = {
                source: (number, last)
                for source, number, last in connection.execute(
                    select(
                        schema.events.c.source,
                        func.count(),
                        func.max(schema.events.c.received_at),
                    ).group_by(schema.events.c.source)
                )
            }
        if broken:
            raise broken[0][1]
        return [
            Registered(
                source=source,
                events=counts.get(source.name, (0, None))[0],
                last_at=counts.get(source.name, (0, None))[1],
            )
            for source in sources
        ]

    def get(self, name: str) -> Source:
        """
        Return one source.

        Raises:
            ConfigError: There is none of that name.
        """
        with self._store.read() as connection:
            sources, broken = load_sources(connection)
        for source in sources:
            if source.name == name:
                return source
        for bad, error in broken:
            if bad == name:
                raise error
        raise _unknown(name, [source.name for source in sources])

    def add(self, source: Source) -> None:
        """
        Add a source with its secrets.

        Raises:
            ConfigError: There is one of that name already, or a secret cannot work.
        """
        if not source.secrets:
            raise ConfigError(
                "secrets", (), "at least one", "without one, nothing can be shown to be genuine"
            )
        for key in source.secrets:
            _check(source, key)

        def work(connection: Connection) -> None:
            now = self._store.now()
            if _row_of(connection, source.name) is not None:
                raise ConfigError(
                    "source", source.name, "a name that is not taken",
                    "rotate its secret, or remove it first",
                )  # fmt: skip
            connection.execute(
                insert(_sources).values(
                    name=source.name,
                    provider=source.provider.facts.name,
                    url=source.url or None,
                    priority=source.priority.name.lower(),
                    deadline_us=None if source.deadline is None else round(source.deadline * 1e6),
                    max_body=source.max_body,
                    enabled=source.enabled,
                    created_at=now,
                )
            )
            _add_keys(connection, source.name, source.secrets, now)
            provider = source.provider.facts.name
            self._note(connection, "source.add", source.name, {"provider": provider}, now)

        self._store.write(work)

    def rotate(self, name: str, key: Key, *, keep: float) -> int:
        """
        Give a source a new secret, and end the old ones.

        Args:
            name: The source.
            key: The new secret.
            keep: Seconds for which the old ones are still accepted. An hour at least suits
                senders that sign with the old one for a while (Shopify does for half an hour).

        Returns:
            How many old secrets got an end.

        Raises:
            ConfigError: There is no such source, the key id is taken, or the secret cannot work.
        """
        check_name(key.key_id, "key id")
        source = self.get(name)
        _check(source, key)
        if any(key.key_id == old.key_id for old in source.secrets):
            raise ConfigError(
                "key id", key.key_id, "one that the source does not have",
                "leave it out to have one made",
            )  # fmt: skip

        def work(connection: Connection) -> int:
            now = self._store.now()
            end = now + round(keep * 1e6)
            ended = connection.execute(
                update(_secrets)
                .where(
                    _secrets.c.source == name,
                    _secrets.c.not_after.is_(None) | (_secrets.c.not_after > end),
                )
                .values(not_after=end)
            ).rowcount
            _add_keys(connection, name, (key,), now)
            detail = {"key_id": key.key_id, "keep_seconds": keep}
            self._note(connection, "source.rotate", name, detail, now)
            return ended

        return self._store.write(work)

    def enable(self, name: str, enabled: bool) -> None:
        """
        Let a source take events, or answer 503 for now.

        Raises:
            ConfigError: There is none of that name.
        """

        def work(connection: Connection) -> None:
            changed = connection.execute(
                update(_sources).where(_sources.c.name == name).values(enabled=enabled)
            ).rowcount
            if not changed:
                raise _unknown(name, _names(connection))
            action = "source.enable" if enabled else "source.disable"
            self._note(connection, action, name, {}, self._store.now())

        self._store.write(work)

    def remove(self, name: str) -> None:
        """
        Forget a source and its secrets; its events stay.

        Raises:
            ConfigError: There is none of that name.
        """

        def work(connection: Connection) -> None:
            if _row_of(connection, name) is None:
                raise _unknown(name, _names(connection))
            connection.execute(delete(_secrets).where(_secrets.c.source == name))
            connection.execute(delete(_sources).where(_sources.c.name == name))
            self._note(connection, "source.remove", name, {}, self._store.now())

        self._store.write(work)

    def _note(
        self, connection: Connection, action: str, subject: str, detail: dict[str, Any], now: int
    ) -> None:
        row = {"at": now, "actor": self._actor, "action": action, "subject": subject}
        connection.execute(insert(_audit).values(**row, detail=detail))


def _check(source: Source, key: Key) -> None:
    if not key.is_elsewhere:
        source.provider.check_secret(key.read())


def _row_of(connection: Connection, name: str) -> Any:
    return connection.execute(select(_sources.c.name).where(_sources.c.name == name)).first()


def _names(connection: Connection) -> Sequence[str]:
    return connection.execute(select(_sources.c.name)).scalars().all()


def _add_keys(connection: Connection, name: str, keys: Sequence[Key], now: int) -> None:
    # A microsecond apart, so that the first one given stays the current one.
    for age, key in enumerate(keys):
        not_after = None if key.not_after is None else round(key.not_after * 1e6)
        row = {"source": name, "key_id": key.key_id, "value": key.value, "not_after": not_after}
        connection.execute(insert(_secrets).values(**row, created_at=now - age))


def _unknown(name: str, known: Iterable[str]) -> ConfigError:
    known = list(known)
    hint = did_you_mean(name, known) if known else "there is none yet; add one"
    return ConfigError("source", name, "a source of this store", hint)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
