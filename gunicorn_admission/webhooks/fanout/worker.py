"""A worker: consumers at work in one process, each with threads of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial

from sqlalchemy import Connection

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.webhooks.fanout.consumers import Consumer, Consumers
from gunicorn_admission.webhooks.fanout.loop import Loop
from gunicorn_admission.webhooks.fanout.runner import Observe, Runner, ignore
from gunicorn_admission.webhooks.fanout.subscriptions import Subscriptions
from gunicorn_admission.webhooks.gates import GatePolicy, configure
from gunicorn_admission.webhooks.store import Store

__all__ = ["Worker"]

_log = logging.getLogger("gunicorn_admission.fanout")


class Worker:
    """
    Runs consumers.

    In a test call :meth:`step`, which needs no thread; in a program :meth:`start` and
    :meth:`stop`, or :meth:`run`.

    Args:
        store: Where the deliveries are.
        consumers: The registry.
        names: Which of them to run; all of them when it is empty.
        threads: Handlers at once for each consumer, in place of its own ``concurrency``.
        poll: Longest pause between looks into an empty subscription, in seconds.
        observe: Told each outcome; see :class:`Runner`.

    Raises:
        ConfigError: A name is not registered, or none is.

    Thread safety: ``stop`` may be called from any thread or a signal handler.
    """

    def __init__(
        self,
        store: Store,
        consumers: Consumers,
        *,
        names: Iterable[str] = (),
        threads: int | None = None,
        poll: float = 1.0,
        observe: Observe = ignore,
    ) -> None:
        chosen: list[Consumer] = [consumers[name] for name in names] or list(consumers)
        if not chosen:
            raise ConfigError(
                "consumers",
                [],
                "one consumer at least",
                '@consumers.consumer("name") registers one',
            )
        self._store = store
        self._runners = [Runner(store, consumer, observe=observe) for consumer in chosen]
        self._loops = [Loop(runner, threads=threads, poll=poll) for runner in self._runners]
        self._stop = threading.Event()
        self._is_set_up = False

    def check(self) -> None:
        """
        See whether every consumer has a subscription.

        Raises:
            ConfigError: One has none.
        """
        known = [subscription.name for subscription in Subscriptions(self._store).all()]
        for runner in self._runners:
            name = runner.consumer.name
            if name not in known:
                raise ConfigError(
                    "consumer", name, "a name that has a subscription",
                    f"gunicorn-admission subscriptions create {name}"
                    + (f"; {did_you_mean(name, known)}" if known else ""),
                )  # fmt: skip

    def set_up(self) -> None:
        """
        Set up the ceilings that the consumers' code declares, where the code has changed.

        Raises:
            ConfigError: Work is to be deferred for longer than the subscription keeps events.
        """
        if self._is_set_up:
            return
        for runner in self._runners:
            consumer = runner.consumer
            if consumer.gate is not None:
                self._store.write(partial(_configure, consumer.name, consumer.gate, self._store))
        self._is_set_up = True

    def step(self, limit: int = 100) -> int:
        """
        Let each consumer claim and run what is due, in the calling thread.

        Returns:
            How many deliveries were taken in hand.
        """
        self.set_up()
        return sum(runner.step(limit) for runner in self._runners)

    def drain(self, limit: int = 100) -> int:
        """Call :meth:`step` until nothing is due. Returns how many deliveries that were."""
        total = 0
        while done := self.step(limit):
            total += done
        return total

    def start(self) -> None:
        """
        Start all threads.

        Raises:
            ConfigError: A consumer has no subscription, or its gate cannot be set up.
        """
        self.check()
        self.set_up()
        for loop in self._loops:
            loop.start()
            consumer = loop.runner.consumer
            _log.info("%s: started", consumer.name)

    def stop(self) -> None:
        """Ask for the end: claim nothing more, finish what has begun."""
        self._stop.set()
        for loop in self._loops:
            loop.stop()

    def join(self, grace: float) -> bool:
        """
        Wait for the handlers that still run.

        Args:
            grace: Seconds. What runs longer is left to its lease.

        Returns:
            Whether all of them ended.
        """
        deadline = time.monotonic() + grace
        ended = [loop.join(deadline) for loop in self._loops]
        for loop in self._loops:
            for lease in loop.running():
                event = lease.event
                _log.error(
                    "%s: %s/%s still runs; its lease ends by itself",
                    event.consumer, event.source, event.event_id,
                )  # fmt: skip
        return all(ended)

    def run(self, grace: float = 30.0, is_wanted: Callable[[], bool] = lambda: True) -> bool:
        """
        Start, wait for :meth:`stop`, and end.

        Args:
            grace: Seconds that running handlers have to end.
            is_wanted: Asked once a second; ``False`` is as good as :meth:`stop`.

        Returns:
            Whether all handlers ended in time.
        """
        self.start()
        while not self._stop.wait(1.0) and is_wanted():
            pass
        self.stop()
        _log.info("stopping: what has begun is finished, the rest is handed back")
        ended = self.join(grace)
        _log.info("stopped" if ended else "stopped, but not all of it in time")
        return ended


def _configure(name: str, gate: GatePolicy, store: Store, connection: Connection) -> None:
    configure(connection, name, gate, now=store.now(), declared=True)
