"""What a drill plays on: a sender that signs, the real intake, three consumers, a real worker."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from gunicorn_admission.webhooks.drill.sweep import sweep
from gunicorn_admission.webhooks.fanout import Consumers, Event, Routing, Subscriptions, Worker
from gunicorn_admission.webhooks.fanout.statistics import ConsumerStatistics, statistics
from gunicorn_admission.webhooks.gates import Ceiling, GatePolicy, configure
from gunicorn_admission.webhooks.intake import Intake, Source
from gunicorn_admission.webhooks.store import Store

__all__ = ["ALLOWANCE", "Failed", "Stage"]

#: Events that analytics may process in the drill.
ALLOWANCE: Final = 6

_SECRET: Final = "drill: a secret that opens nothing"
_PATIENCE: Final = 15.0  # seconds; only a failing drill waits so long
_POLL: Final = 0.02


class Failed(Exception):
    """A check did not hold; the message says what was seen instead."""


class Stage:
    """
    The parts of one drill, and what its consumers did.

    Args:
        store: Where it plays. What else is in it is left alone: no other subscription gets an
            event of the drill, and none of the drill's an event of others.
        mark: Put behind all names, so that they are no one else's.

    Thread safety: for one thread; the worker has its own.
    """

    def __init__(self, store: Store, mark: str = "") -> None:
        self.store = store
        self.source = f"drill{mark}"
        self.entitlements = f"entitlements{mark}"
        self.invoices = f"invoice-projection{mark}"
        self.analytics = f"usage-analytics{mark}"
        self.names = (self.entitlements, self.invoices, self.analytics)
        self.subscriptions = Subscriptions(store, actor="drill")
        self.invoices_may_go_on = threading.Event()
        self.invoices_may_go_on.set()
        self.invoices_are_held = threading.Event()
        self._effects: dict[str, list[str]] = {name: [] for name in self.names}
        self._lock = threading.Lock()  # guards the lists of effects
        self._number = 0
        self._intake = Intake(
            store,
            [Source(self.source, provider="github", secrets=_SECRET)],
            router=Routing(store, only=self.names),
        )
        self._worker: Worker | None = None

    def open(self) -> None:
        """Make the subscriptions and the ceiling, and start the worker."""
        for name in self.names:
            self.subscriptions.create(
                name,
                filter={"source": [self.source]},
                retry={"base": 0.05, "cap": 0.2},
                lease=5,
                severity="info",  # a pager of others may tell it, and it shall wake nobody
            )
        policy = GatePolicy([Ceiling(ALLOWANCE, "requests", per="24h")], at_ceiling="refuse")
        now = self.store.now()
        self.store.write(
            lambda connection: configure(connection, self.analytics, policy, now=now, actor="drill")
        )
        consumers = Consumers()
        for name in self.names:
            consumers.consumer(name)(self._handler(name))
        self._worker = Worker(self.store, consumers, poll=0.05)
        self._worker.start()

    def close(self) -> None:
        """End the worker and remove every trace but the lines of the audit."""
        self.invoices_may_go_on.set()
        if self._worker is not None:
            self._worker.stop()
            self._worker.join(_PATIENCE)
        sweep(self.store, self.source, self.names)

    def new_id(self) -> str:
        """Return an event id that was not used before."""
        self._number += 1
        return f"evt_{self._number:05}"

    def send(self, event_id: str, *, secret: str = _SECRET) -> int:
        """Post an event as its sender would. Returns the status of the answer."""
        body = json.dumps({"event": event_id, "account": "acct_1"}).encode()
        signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        environ: dict[str, Any] = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": f"/hooks/{self.source}",
            "SERVER_NAME": "drill",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_X_GITHUB_DELIVERY": event_id,
            "HTTP_X_GITHUB_EVENT": "usage.recorded",
            "HTTP_X_HUB_SIGNATURE_256": f"sha256={signature}",
            "wsgi.input": io.BytesIO(body),
            "wsgi.url_scheme": "http",
        }
        statuses: list[str] = []
        for _ in self._intake(environ, lambda status, headers: statuses.append(status)):
            pass
        return int(statuses[0].split()[0])

    def send_new(self, count: int) -> list[str]:
        """Post new events; each must be answered 200. Returns their ids."""
        ids = [self.new_id() for _ in range(count)]
        for event_id in ids:
            status = self.send(event_id)
            if status != 200:
                raise Failed(f"{event_id} was answered {status}")
        return ids

    def effects(self, name: str) -> list[str]:
        """Return the events whose effect happened at a consumer, each time that it did."""
        with self._lock:
            return list(self._effects[name])

    def statistics(self, name: str) -> ConsumerStatistics:
        """Return how a consumer stands."""
        return statistics(self.store, [name], counters=True)[0]

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """
        Wait until something holds.

        Raises:
            Failed: It does not, after a patience that is long for a working system.
        """
        ends = time.monotonic() + _PATIENCE
        while not holds():
            if time.monotonic() > ends:
                raise Failed(f"waited {_PATIENCE:g} s in vain: {what}")
            time.sleep(_POLL)

    def until_done(self, name: str, ids: Iterable[str]) -> None:
        """Wait until a consumer has had the effect of these events."""
        wanted = set(ids)
        self.until(
            f"{name} to complete {len(wanted)} events",
            lambda: wanted <= set(self.effects(name)),
        )

    def until_idle(self, names: Iterable[str]) -> None:
        """Wait until these consumers have nothing left to do."""
        chosen = list(names)
        self.until(
            f"{', '.join(chosen)} to finish",
            lambda: not any(each.waiting for each in statistics(self.store, chosen)),
        )

    def _handler(self, name: str) -> Callable[[Event], None]:
        def handler(event: Event) -> None:
            if name == self.invoices and not self.invoices_may_go_on.is_set():
                self.invoices_are_held.set()
                self.invoices_may_go_on.wait(_PATIENCE)
            with self._lock:
                self._effects[name].append(event.event_id)

        return handler
