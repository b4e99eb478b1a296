"""
From events to consumers: each subscription has its own deliveries, leases and dead letters.

Start at ``subscription.py`` (what a consumer wants), then ``routing.py`` (the rows that an intake
writes), ``claims.py`` and ``acknowledge.py`` (how a row is taken and finished), ``runner.py`` (one
consumer at work) and ``worker.py`` (all of them, with threads). ``states.py`` lists the states.
"""

from __future__ import annotations

from gunicorn_admission.webhooks.fanout.consumers import Consumer, Consumers
from gunicorn_admission.webhooks.fanout.event import Event
from gunicorn_admission.webhooks.fanout.outcome import GiveUp, LeaseLost, RetryIn, Spent
from gunicorn_admission.webhooks.fanout.retry import RetryPolicy
from gunicorn_admission.webhooks.fanout.routing import RoutedEvent, Routing
from gunicorn_admission.webhooks.fanout.states import Mode, State
from gunicorn_admission.webhooks.fanout.subscription import Subscription
from gunicorn_admission.webhooks.fanout.subscriptions import Subscriptions
from gunicorn_admission.webhooks.fanout.worker import Worker

__all__ = [
    "Consumer",
    "Consumers",
    "Event",
    "GiveUp",
    "LeaseLost",
    "Mode",
    "RetryIn",
    "RetryPolicy",
    "RoutedEvent",
    "Routing",
    "Spent",
    "State",
    "Subscription",
    "Subscriptions",
    "Worker",
]
