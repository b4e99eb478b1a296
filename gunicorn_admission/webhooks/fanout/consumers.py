"""The code that performs effects, by the name of its subscription."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from attrs import field, frozen

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import DurationLike, parse_duration
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.webhooks.fanout.event import Event
from gunicorn_admission.webhooks.fanout.subscription import check_name
from gunicorn_admission.webhooks.gates import Ceiling, GatePolicy
from gunicorn_admission.webhooks.gates.units import check_amount, check_cost

__all__ = ["Consumer", "Consumers", "Cost"]

#: What an event costs: a number of requests, amounts by unit, or a function of the event.
Cost = int | Mapping[str, int] | Callable[[Event], int | Mapping[str, int]]

Handler = TypeVar("Handler", bound=Callable[..., object])

_ON_UNCERTAIN: Final = ("retry", "review")
_MOST_THREADS: Final = 256


def _amounts(cost: int | Mapping[str, int]) -> Mapping[str, int]:
    if isinstance(cost, Mapping):
        return check_cost(cost)
    return {"requests": check_amount(cost, "cost")}


def _cost(cost: Cost | None) -> Any:
    return cost if cost is None or callable(cost) else _amounts(cost)


def _timeout(value: DurationLike | None) -> float | None:
    return None if value is None else parse_duration(value, "timeout")


def _threads(_: object, __: object, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_THREADS:
        raise ConfigError(
            "concurrency", value, f"an integer from 1 to {_MOST_THREADS}",
            "it is the number of threads in each process",
        )  # fmt: skip


def _uncertain(_: object, __: object, value: object) -> None:
    if value not in _ON_UNCERTAIN:
        raise ConfigError(
            "on_uncertain", value, f"one of {', '.join(_ON_UNCERTAIN)}",
            "retry where the target knows the idempotency key, review where it does not",
        )  # fmt: skip


def _handler(_: object, __: object, value: Any) -> None:
    if not callable(value) or inspect.iscoroutinefunction(value):
        raise ConfigError(
            "handler", value, "a plain function",
            "workers are threads; run a coroutine with asyncio.run inside the function",
        )  # fmt: skip


@frozen(kw_only=True)
class Consumer:
    """
    One handler and how it is to be run; see :meth:`Consumers.consumer` for the arguments.

    Thread safety: immutable.
    """

    name: str = field(converter=check_name)
    handler: Callable[..., object] = field(validator=_handler)
    cost: Any = field(default=None, converter=_cost)
    transactional: bool = False
    on_uncertain: str = field(default="retry", validator=_uncertain)
    concurrency: int = field(default=1, validator=_threads)
    timeout: float | None = field(default=None, converter=_timeout)
    no_retry: tuple[type[Exception], ...] = ()
    gate: GatePolicy | None = None  # that its code declares

    def cost_of(self, event: Event) -> Mapping[str, int] | None:
        """
        Return what an event costs; ``None`` where its gate is to say.

        Raises:
            ConfigError: It is not whole numbers.
        """
        if callable(self.cost):
            return _amounts(self.cost(event))
        amounts: Mapping[str, int] | None = self.cost
        return amounts


class Consumers:
    """
    A registry of consumers; what ``gunicorn-admission worker --app module:attr`` names.

    Thread safety: fill it while the program is loaded.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, Consumer] = {}

    def consumer(
        self,
        name: str,
        *,
        cost: Cost | None = None,
        transactional: bool = False,
        on_uncertain: str = "retry",
        concurrency: int = 1,
        timeout: DurationLike | None = None,
        no_retry: tuple[type[Exception], ...] = (),
        ceilings: Iterable[Ceiling] | None = None,
        at_ceiling: str = "refuse",
        charge: str = "event",
    ) -> Callable[[Handler], Handler]:
        """
        Register the decorated function, which is called as ``handler(event)``.

        That it returns means that its effect is durable. That it raises means that the attempt
        has failed.

        Args:
            name: Of the subscription.
            cost: What an event costs at the consumer's gate: a number of requests, amounts by
                unit, or a function of the event, which runs outside of any transaction.
            transactional: The effect is in the store's own database. The function is called as
                ``handler(event, connection)``, and what it does over that connection is
                committed together with the acknowledgement, or not at all. Keep it short: on
                SQLite every other writer waits.
            on_uncertain: After a crash in the middle of an attempt, ``"retry"``, or leave it to
                a person with ``"review"``. For effects elsewhere whose target knows no
                idempotency key.
            concurrency: Threads in each process.
            timeout: How long an attempt may hold its lease. After that the lease runs out, and
                another worker may take the event. The thread itself cannot be stopped.
            no_retry: Exceptions after which no further attempt is made.
            ceilings: What it may spend. Workers set them up when they start, if the code has
                changed: what an operator sets in between stays. An empty list ends those that
                were set; ``None`` leaves the gate to operators.
            at_ceiling: ``"refuse"``, ``"defer"`` or ``"review"`` what no longer fits.
            charge: ``"event"``, ``"attempt"`` or ``"actual"``; see
                :class:`~gunicorn_admission.webhooks.gates.Charge`.

        Raises:
            ConfigError: A value cannot work, or the name is taken.
        """

        gate = None
        if ceilings is not None:
            fixed = None if callable(cost) else cost
            gate = GatePolicy(ceilings, cost=fixed, at_ceiling=at_ceiling, charge=charge)
            cost = cost if callable(cost) else None  # the gate knows it

        def register(handler: Handler) -> Handler:
            self.add(
                Consumer(
                    name=name,
                    handler=handler,
                    cost=cost,
                    gate=gate,
                    transactional=transactional,
                    on_uncertain=on_uncertain,
                    concurrency=concurrency,
                    timeout=timeout,
                    no_retry=no_retry,
                )
            )
            return handler

        return register

    def add(self, consumer: Consumer) -> None:
        """
        Register a consumer.

        Raises:
            ConfigError: The name is taken.
        """
        if consumer.name in self._by_name:
            raise ConfigError(
                "name", consumer.name, "a name that is not taken", "one subscription, one consumer"
            )
        self._by_name[consumer.name] = consumer

    def __getitem__(self, name: str) -> Consumer:
        """
        Return a consumer by its name.

        Raises:
            ConfigError: There is none of that name.
        """
        if name not in self._by_name:
            hint = did_you_mean(name, self._by_name) if self._by_name else "none is registered"
            raise ConfigError("consumer", name, "the name of a registered consumer", hint)
        return self._by_name[name]

    def __iter__(self) -> Iterator[Consumer]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)
