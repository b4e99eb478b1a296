"""
The two ways to a statsd server: gunicorn's own logger, or a client of our own.

Both put one spelling on the wire, are used on the reporter's thread only, and turn every failure
into one log line at most.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from gunicorn_admission.core.policy import SECOND

if TYPE_CHECKING:
    from gunicorn_admission.observe.statsd_client import Address, Batch, Client

__all__ = ["GunicornWire", "StatsdLog", "StatsdWire", "Wire"]

_log = logging.getLogger("gunicorn_admission")

#: A name server that does not know the host is asked again after this, then twice this, ...
_RETRY_NS = 30 * SECOND
#: ... and one that does know it after this, since a server may move to another address.
_REFRESH_NS = 300 * SECOND
_NEVER_NS = 1 << 63


class Wire(Protocol):
    """Carries the metrics of one tick at a time, between :meth:`open` and :meth:`flush`."""

    def open(self) -> bool:
        """Begin a tick; False when nothing can be sent now."""

    def gauge(self, name: str, value: float) -> None:
        """Set a gauge."""

    def count(self, name: str, value: float) -> None:
        """Add to a counter."""

    def timing(self, name: str, milliseconds: float) -> None:
        """Add one duration to a timer."""

    def flush(self) -> None:
        """End the tick."""

    def close(self) -> None:
        """Give back the socket, if it is ours."""


class StatsdLog(Protocol):
    """What is used of gunicorn's statsd logger; the same from 20.1 to 27."""

    def gauge(self, name: str, value: float) -> object:
        """Set a gauge."""

    def increment(self, name: str, value: float) -> object:
        """Add to a counter."""

    def histogram(self, name: str, value: float) -> object:
        """Add to a timer before 24.1, to a DogStatsD histogram since."""


class GunicornWire:
    """
    Sends through gunicorn's logger: its socket, its prefix, its tags.

    Its methods are called directly, because zeros that are given as ``extra`` of a log call got
    lost before gunicorn 26.1 (gunicorn #3676).

    Args:
        log: ``worker.log``, a ``gunicorn.instrument.statsd.Statsd``.
    """

    def __init__(self, log: StatsdLog) -> None:
        self._log = log
        # timer() came with 24.1; before that, histogram() wrote what timer() writes now.
        self._timer: Callable[[str, float], object] = getattr(log, "timer", log.histogram)

    def open(self) -> bool:
        """See :class:`Wire`; gunicorn's socket is always ready."""
        return True

    def gauge(self, name: str, value: float) -> None:
        """See :class:`Wire`."""
        self._forget_refusal()
        self._log.gauge(name, value)

    def count(self, name: str, value: float) -> None:
        """See :class:`Wire`."""
        self._forget_refusal()
        self._log.increment(name, value)

    def timing(self, name: str, milliseconds: float) -> None:
        """See :class:`Wire`."""
        self._forget_refusal()
        self._timer(name, milliseconds)

    def flush(self) -> None:
        """See :class:`Wire`; each metric has left already."""

    def close(self) -> None:
        """See :class:`Wire`; the socket is gunicorn's."""

    def _forget_refusal(self) -> None:
        # Where no server listens, the next send raises the refusal of the one before, and
        # gunicorn logs a traceback for it: dozens a tick. Reading the error also clears it.
        sock = getattr(self._log, "sock", None)
        if sock is not None:
            sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


class StatsdWire:
    """
    Sends with the ``statsd`` package, in batches.

    Nothing is opened before the first tick. The host is resolved on a tick, tried again less and
    less often while that fails, and looked up anew every five minutes while it works.

    Args:
        address: ``(host, port)``, or the path of a Unix datagram socket.
        prefix: Stands before each name, with a dot; may be empty.
        tags: DogStatsD tags as gunicorn's ``dogstatsd_tags``; may be empty.
        clock: Monotonic nanoseconds.
    """

    def __init__(
        self,
        address: Address,
        *,
        prefix: str = "",
        tags: str = "",
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._address, self._prefix, self._tags = address, prefix.rstrip("."), tags
        self._clock = clock
        self._client: Client | None = None
        self._batch: Batch | None = None
        self._due_ns = clock()
        self._retry_ns = _RETRY_NS
        self._failing = False

    def open(self) -> bool:
        """See :class:`Wire`; may take as long as the name server does."""
        now_ns = self._clock()
        if now_ns >= self._due_ns:
            self._connect(now_ns)
        if self._client is None:
            return False
        self._batch = self._client.pipeline()
        return True

    def gauge(self, name: str, value: float) -> None:
        """See :class:`Wire`."""
        if self._batch is not None:
            self._batch.gauge(name, value)

    def count(self, name: str, value: float) -> None:
        """See :class:`Wire`."""
        if self._batch is not None:
            self._batch.incr(name, value)

    def timing(self, name: str, milliseconds: float) -> None:
        """See :class:`Wire`."""
        if self._batch is not None:
            self._batch.timing(name, milliseconds)

    def flush(self) -> None:
        """See :class:`Wire`."""
        batch, self._batch = self._batch, None
        if batch is not None:
            batch.send()

    def close(self) -> None:
        """See :class:`Wire`."""
        client, self._client = self._client, None
        self._due_ns = _NEVER_NS
        if client is not None:
            client.close()

    def _connect(self, now_ns: int) -> None:
        try:
            from gunicorn_admission.observe.statsd_client import connect

            client = connect(self._address, self._prefix, self._tags)
        except ImportError:
            self._due_ns = _NEVER_NS
            _log.warning(
                "no metrics to statsd: the statsd package is missing. "
                "Hint: pip install 'gunicorn-admission[statsd]'"
            )
        except (OSError, UnicodeError) as problem:
            self._due_ns = now_ns + self._retry_ns
            self._retry_ns = min(2 * self._retry_ns, _REFRESH_NS)
            if not self._failing:
                self._failing = True
                _log.warning(
                    "statsd server %s cannot be reached for now: %s. Requests are not affected; "
                    "it is looked up again from time to time",
                    self._address,
                    problem,
                )
        else:
            if self._client is not None:
                self._client.close()
            if self._failing:
                _log.info("statsd server %s is found; metrics go there now", self._address)
            self._client, self._failing, self._retry_ns = client, False, _RETRY_NS
            self._due_ns = now_ns + _REFRESH_NS
