"""Which statsd sink fits: gunicorn's logger, a client of our own to the same server, or none."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from gunicorn.util import parse_address

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.observe.statsd import StatsdSink
from gunicorn_admission.observe.wire import GunicornWire, StatsdLog, StatsdWire, Wire

if TYPE_CHECKING:
    from gunicorn_admission.settings import Settings

__all__ = ["choose_sink", "choose_wire"]


def choose_sink(
    worker_log: object,
    settings: Settings,
    *,
    cfg: object | None = None,
    worker: int | str | None = None,
    totals: Callable[[], Mapping[str, float]] | None = None,
) -> StatsdSink | None:
    """
    Make the statsd sink of a gunicorn worker. Opens nothing: that is left to the first tick.

    In this order: the server that our own ``statsd_host`` names, with our ``statsd_prefix`` or
    else gunicorn's; gunicorn's logger, when it is its statsd
    client; the server of gunicorn's ``statsd_host``, in gunicorn's format. The last serves people
    with a ``logger_class`` of their own, and a gunicorn that could not resolve the host when it
    started, for it never tries again. It also serves Unix sockets where the ``statsd`` package is
    installed, because gunicorn's client neither connects again after the server restarts nor
    stops waiting for one that hangs.

    Where ``dogstatsd_tags`` are in use, gauges keep their plain names: tags, not names, tell
    workers apart there, and gunicorn's logger has the same tags for all.

    Args:
        worker_log: ``worker.log``.
        settings: Ours; ``statsd_host`` and ``statsd_prefix`` are read.
        cfg: ``worker.cfg``; by default that of the logger, which one of the user's may not keep.
        worker, totals: See :class:`~gunicorn_admission.observe.statsd.StatsdSink`.

    Returns:
        The sink, or ``None`` when no server is named.

    Raises:
        ConfigError: When ``statsd_host`` in ``settings`` is no address.
    """
    wire, tags = choose_wire(worker_log, settings, cfg)
    if wire is None:
        return None
    return StatsdSink(wire, worker=None if tags else worker, totals=totals)


def choose_wire(
    worker_log: object, settings: Settings, cfg: object | None = None
) -> tuple[Wire | None, str]:
    """
    Return the way to the server, or ``None`` where none is named, and the tags in use.

    Args:
        worker_log, settings, cfg: See :func:`choose_sink`.

    Raises:
        ConfigError: As :func:`choose_sink`.
    """
    cfg = cfg if cfg is not None else getattr(worker_log, "cfg", None)
    tags = str(getattr(cfg, "dogstatsd_tags", None) or "")
    return _wire(worker_log, settings, cfg, tags), tags


def _wire(worker_log: object, settings: Settings, cfg: object, tags: str) -> Wire | None:
    prefix = str(getattr(cfg, "statsd_prefix", None) or "")
    if settings.statsd_host:
        own = _parsed(settings.statsd_host)
        return StatsdWire(own, prefix=settings.statsd_prefix or prefix, tags=tags)
    if _carries(worker_log):
        return GunicornWire(cast(StatsdLog, worker_log))
    address = getattr(cfg, "statsd_host", None)
    return StatsdWire(address, prefix=prefix, tags=tags) if address else None


def _carries(worker_log: object) -> bool:
    from gunicorn.instrument.statsd import Statsd

    if not isinstance(worker_log, Statsd) or worker_log.sock is None:
        return False
    return worker_log.sock.family != socket.AF_UNIX or find_spec("statsd") is None


def _parsed(text: str) -> tuple[str, int] | str:
    try:
        address = parse_address(text, default_port="8125")
    except RuntimeError:
        address = None
    match address:
        case str(path) if path:
            return path
        case (str(host), int(port)) if host and 0 < port < 65536:
            return host, port
    raise ConfigError(
        "statsd_host", text, "host:port or unix:///path", "it is spelled as in gunicorn"
    )
