"""Three senders that stand in for GitHub, Stripe and Shopify, and a flood of visitors."""

from __future__ import annotations

import sys
import threading
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.webhook_senders.simulator import Simulator, signing_key

#: Source, provider, and the variable that holds its secret.
SENDERS = (
    ("git", "github", "GIT_SECRET"),
    ("billing", "stripe", "BILLING_SECRET"),
    ("orders", "shopify", "ORDERS_SECRET"),
)

#: The providers retry after minutes and hours; here a day of that takes a minute and a half.
SPEED = 1000.0


class Senders:
    """Each delivers its events by threads of its own, some of them twice."""

    def __init__(self, address: str, environment: dict[str, str]) -> None:
        self._of = {
            source: Simulator(
                provider, signing_key(provider, environment[secret]), f"{address}/hooks/{source}",
                speed=SPEED,
            )
            for source, provider, secret in SENDERS
        }  # fmt: skip
        self._next = 1

    def send(self, each: int, *, threads: int = 4, twice_every: int = 10) -> None:
        """Let each sender send so many new events, and every tenth twice at once."""
        first, self._next = self._next, self._next + each
        numbers = list(range(first, first + each))
        numbers += [number for number in numbers if number % twice_every == 0]
        workers = []
        for simulator in self._of.values():
            for start in range(threads):
                part = numbers[start::threads]
                workers.append(threading.Thread(target=_deliver, args=(simulator, part)))
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    @property
    def taken(self) -> set[str]:
        """Events that were answered 2xx."""
        return {
            f"{source}/{event_id}"
            for source, simulator in self._of.items()
            for event_id in simulator.outcome.delivered
        }

    @property
    def lost(self) -> list[str]:
        """Events that a sender gave up."""
        return [event for simulator in self._of.values() for event in simulator.outcome.lost]

    @property
    def retried(self) -> int:
        """Deliveries that came again because the answer before was no 2xx."""
        return sum(simulator.outcome.retried for simulator in self._of.values())

    @property
    def answers(self) -> Counter[str]:
        """How often each status was answered."""
        return sum((simulator.outcome.answers for simulator in self._of.values()), Counter())


def _deliver(simulator: Simulator, numbers: list[int]) -> None:
    for number in numbers:
        simulator.deliver(number)


class Flood:
    """Visitors who want slow reports, many more than four threads can serve."""

    def __init__(self, address: str, visitors: int = 24) -> None:
        self._url = f"{address}/reports"
        self._over = threading.Event()
        self.answers: Counter[str] = Counter()
        self._threads = [threading.Thread(target=self._visit) for _ in range(visitors)]

    def __enter__(self) -> Flood:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _visit(self) -> None:
        while not self._over.is_set():
            try:
                with urllib.request.urlopen(self._url, timeout=10) as answer:
                    status = str(answer.status)
            except urllib.error.HTTPError as error:
                status = str(error.code)
                self._over.wait(0.02)
            except OSError:
                status = "none"
            self.answers[status] += 1
