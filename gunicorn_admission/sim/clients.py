"""Those who send: they choose a worker, lose patience, try again."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from gunicorn_admission.core.types import State
from gunicorn_admission.sim.clock import Clock, Timeout, to_ns
from gunicorn_admission.sim.request import Event, Request
from gunicorn_admission.sim.scenario import Scenario, Sender
from gunicorn_admission.sim.tally import Tally
from gunicorn_admission.sim.worker import Worker

__all__ = ["Clients"]

_SHED = State.SHED


class Clients:
    """
    Every sender of a scenario, and the balancer between them and the workers.

    Args:
        scenario: Who they are.
        clock: The run's.
        random: For the choice of workers and the spread of retries.
        tally: Told what became of each attempt.

    Attributes:
        workers: Where requests can go; set before the first is sent.
    """

    def __init__(self, scenario: Scenario, clock: Clock, random: Random, tally: Tally) -> None:
        self.workers: Sequence[Worker] = ()
        self._clock = clock
        self._random = random
        self._tally = tally
        self._senders: list[Sender] = [kind.sender for kind in scenario.classes]
        self._patience_ns = [to_ns(sender.patience) for sender in self._senders]
        self._balancing = scenario.balancing
        self._uneven = scenario.uneven
        self._elsewhere = scenario.elsewhere
        self._turn = 0

    def send(self, event: Event) -> None:
        """Make an attempt."""
        event.attempts += 1
        gone_ns = self._clock.now_ns + self._patience_ns[event.kind]
        self._tally.sent(event)
        self._hand_over(event, self._choose(), gone_ns)

    def _hand_over(self, event: Event, worker: Worker, gone_ns: int) -> None:
        now_ns = self._clock.now_ns
        request = Request(event, worker, now_ns, gone_ns)
        if self._senders[event.kind].retries:
            self._clock.after(gone_ns - now_ns, self._lost_patience, request)
        worker.receive(request)

    # -- the balancer ----------------------------------------------------------------

    def _choose(self) -> Worker:
        workers = self.workers
        if len(workers) == 1:
            return workers[0]
        if self._balancing == "round_robin":
            self._turn = (self._turn + 1) % len(workers)
            return workers[self._turn]
        if self._balancing == "least":
            return min(workers, key=lambda worker: worker.outstanding)
        if self._random.random() < self._uneven / len(workers):
            return workers[0]
        return workers[int(self._random.random() * len(workers))]

    def _another(self, event: Event) -> Worker | None:
        """A worker that has not turned the event down yet, if it may be tried at all."""
        if len(event.tried) > self._elsewhere:
            return None
        rest = [worker for worker in self.workers if worker not in event.tried]
        return self._random.choice(rest) if rest else None

    # -- answers ---------------------------------------------------------------------

    def answered(self, request: Request) -> None:
        """A worker has answered; too late if the client has left meanwhile."""
        event, now_ns = request.event, self._clock.now_ns
        if request.answered:
            return
        request.answered = True
        if now_ns >= request.gone_ns:
            self._tally.gave_up(request)
            self._try_again(event, 0)
        elif request.state is not _SHED and not request.failed:
            self._tally.served(request, now_ns)
        else:
            event.tried.append(request.worker)
            other = self._another(event) if self._elsewhere else None
            if other is not None:
                self._hand_over(event, other, request.gone_ns)
                return
            if request.state is _SHED:
                self._tally.refused(request, now_ns)
                self._try_again(event, request.retry_after_ns)
            else:
                self._tally.failed(request)
                self._try_again(event, 0)

    def left(self, request: Request) -> None:
        """A worker has noticed that the client of a request had left."""
        if not request.answered:
            request.answered = True
            self._tally.gave_up(request)
            self._try_again(request.event, 0)

    def _lost_patience(self, timeout: Timeout) -> None:
        request: Request = timeout._value
        self.left(request)

    def _try_again(self, event: Event, at_least_ns: int) -> None:
        sender = self._senders[event.kind]
        if event.attempts > len(sender.retries):
            return
        spread = 1 + sender.jitter * (2 * self._random.random() - 1)
        delay_ns = to_ns(sender.retries[event.attempts - 1] * spread)
        if sender.obeys_retry_after:
            delay_ns = max(delay_ns, at_least_ns)
        event.tried.clear()
        self._clock.after(delay_ns, self._retry, event)

    def _retry(self, timeout: Timeout) -> None:
        self.send(timeout._value)
