"""One worker process: the real controller, its threads, its core, what it calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from random import Random

from gunicorn_admission.core.controller import Controller
from gunicorn_admission.core.limits.base import Limit
from gunicorn_admission.core.partition import Partition
from gunicorn_admission.core.policy import MILLISECOND, PartitionPolicy, Policy
from gunicorn_admission.core.types import Mode, State
from gunicorn_admission.sim.clock import Clock, Timeout, to_ns
from gunicorn_admission.sim.gil import Gil
from gunicorn_admission.sim.pool import Pool
from gunicorn_admission.sim.request import Request
from gunicorn_admission.sim.scenario import Class

__all__ = ["Answered", "Worker"]

_WAITING, _GRANTED = State.WAITING, State.GRANTED
_TICK_WAITING_NS = 10 * MILLISECOND

#: Called with a request when its client gets an answer: served, failed or refused.
Answered = Callable[[Request], None]


class _Job:
    """What a class makes a worker do, in nanoseconds."""

    __slots__ = ("cpu_ns", "pool", "scale")

    def __init__(self, kind: Class, pool: Pool | None) -> None:
        self.cpu_ns = to_ns(kind.cpu / 2)
        self.scale = kind.scale
        self.pool = pool


class Worker:
    """
    A process with an admission executor.

    Args:
        clock: The run's.
        random: For the core's jitter.
        policy, partitions, limit: As settings give them to a real worker.
        kinds: The classes of the scenario, in its order.
        pools: What they call, by name.
        threads: Size of its thread pool; bounds what runs where admission is off.
        admission_cpu: Seconds of the GIL for each decision.
        answered: Told of every answer.
        left: Told of every request that was dropped because its client had left.

    Attributes:
        index: Among the workers of the run.
        limit: The algorithm.
        controller: The real one.
        outstanding: Requests sent here and not answered: what a balancer sees.
        running: Requests in a thread now.
        wasted: Handlers that ended after their client had gone.
    """

    def __init__(
        self,
        *,
        index: int,
        clock: Clock,
        random: Random,
        policy: Policy,
        partitions: Iterable[PartitionPolicy],
        limit: Limit,
        kinds: Sequence[Class],
        pools: dict[str, Pool],
        threads: int,
        admission_cpu: float,
        answered: Answered,
        left: Answered,
    ) -> None:
        self.index = index
        self.limit = limit
        self.controller = Controller(policy, limit, clock.now_ns, random.random)
        self.gil = Gil(clock)
        self.pools = pools
        self.outstanding = self.running = self.wasted = 0
        self._clock = clock
        self._threads = threads
        self._admission_ns = to_ns(admission_cpu)
        self._answered, self._left = answered, left
        self._ready: deque[Request] = deque()
        self._tick_at_ns = -1
        shares = self.controller.shares
        for partition in partitions:
            shares.define(partition)
        self.partitions: list[Partition] = [shares.get(kind.name) for kind in kinds]
        self._jobs = [_Job(k, pools[k.dependency] if k.dependency else None) for k in kinds]
        self._enforces = policy.mode is Mode.ENFORCE

    # -- admission -------------------------------------------------------------------

    def receive(self, request: Request) -> None:
        """A request has arrived on the main loop."""
        self.outstanding += 1
        if self._admission_ns:
            self.gil.run(self._admission_ns, self._offer, request)
        else:
            self._offer(request)

    def _offer(self, request: Request) -> None:
        if not self._enforces:
            self._start(request)
            return
        controller = self.controller
        now_ns = self._clock.now_ns
        controller.offer(request, now_ns)
        if controller.changed or controller.events:
            self._settle()
        state = request.state
        if state is _GRANTED:
            self._start(request)
        elif state is _WAITING:
            if self._tick_at_ns < 0 or self._tick_at_ns - now_ns > _TICK_WAITING_NS:
                self._tick_after(_TICK_WAITING_NS)
        else:
            self._answer(request)
        if self._tick_at_ns < 0:
            self._tick_after(controller.next_tick_ns(now_ns) - now_ns)

    def _settle(self) -> None:
        """Act on what the core has decided about those who waited."""
        controller = self.controller
        changed, controller.changed = controller.changed, []
        controller.events = []
        for request in changed:
            assert isinstance(request, Request)
            if request.state is _GRANTED:
                self._start(request)
            else:
                self._answer(request)

    def _tick_after(self, delay_ns: int) -> None:
        self._tick_at_ns = self._clock.now_ns + delay_ns
        self._clock.after(delay_ns, self._tick, self._tick_at_ns)

    def _tick(self, event: Timeout) -> None:
        if event._value != self._tick_at_ns:
            return  # another one was set earlier
        self._tick_at_ns = -1
        controller, now_ns = self.controller, self._clock.now_ns
        controller.tick(now_ns)
        self._settle()
        if controller.inflight or controller.waiting or controller.congestion.overloaded:
            self._tick_after(controller.next_tick_ns(now_ns) - now_ns)

    # -- threads ---------------------------------------------------------------------

    def _start(self, request: Request) -> None:
        if self.running < self._threads:
            self._run(request)
        else:
            self._ready.append(request)

    def _run(self, request: Request) -> None:
        now_ns = self._clock.now_ns
        if not self._enforces:
            request.delay_ns = now_ns - request.arrived_ns
        elif now_ns >= request.gone_ns:
            self.controller.abandon(request, now_ns)
            self.outstanding -= 1
            self._left(request)
            self._settle()
            return
        self.running += 1
        job = self._jobs[request.event.kind]
        if job.cpu_ns:
            self.gil.run(job.cpu_ns, self._call, request)
        else:
            self._call(request)

    def _call(self, request: Request) -> None:
        job = self._jobs[request.event.kind]
        if job.pool is None:
            self._called(request)
        else:
            job.pool.call(request, job.scale, self._called)

    def _called(self, request: Request) -> None:
        job = self._jobs[request.event.kind]
        if job.cpu_ns:
            self.gil.run(job.cpu_ns, self._finish, request)
        else:
            self._finish(request)

    def _finish(self, request: Request) -> None:
        controller, now_ns = self.controller, self._clock.now_ns
        self.running -= 1
        if now_ns >= request.gone_ns:
            self.wasted += 1
        if self._enforces:
            controller.finish(request, now_ns, request.outcome)
        self._answer(request)
        if controller.changed or controller.events:
            self._settle()
        while self._ready and self.running < self._threads:
            self._run(self._ready.popleft())

    # -- the client's side -----------------------------------------------------------

    def _answer(self, request: Request) -> None:
        self.outstanding -= 1
        self._answered(request)

    def pause(self, length_ns: int) -> None:
        """Let the whole process stand still."""
        self.gil.run(length_ns, _nothing, None, whole=True)


def _nothing(value: object) -> None:
    """What follows a pause."""
