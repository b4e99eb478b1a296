"""
Rules that lie in an application, brought to the classifiers in front of it.

An application knows the priorities of its views, but is called only when a thread has been
spent. So it announces where its rules can be read, and whoever classifies in this process
subscribes. The order does not matter: the application is loaded before the worker's
classifier exists, and after the server's own gate.

Lock: one ``threading.Lock`` guards both collections; nothing is called out under it.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable

from gunicorn_admission.classify.routes import Classifier
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.limiter.define import define
from gunicorn_admission.settings.rules import RouteRule

__all__ = ["Source", "announce", "give", "subscribe"]

Source = Callable[[], Iterable[RouteRule]]
"""A bound method that returns the rules of an application as they are now."""

_log = logging.getLogger("gunicorn_admission")
_lock = threading.Lock()
_sources: list[weakref.WeakMethod[Source]] = []
_subscribers: weakref.WeakKeyDictionary[Limiter, Classifier] = weakref.WeakKeyDictionary()


def announce(source: Source) -> None:
    """
    Give the rules of an application to every classifier of this process, now and later.

    Announcing again reads the rules again, for those that were added since.

    Args:
        source: A bound method; it is forgotten when its object is gone.

    Thread safety: may be called from any thread, before a fork too.
    """
    reference = weakref.WeakMethod(source)
    with _lock:
        _sources[:] = [one for one in _sources if one() is not None and one != reference]
        _sources.append(reference)
        subscribers = list(_subscribers.items())
    for limiter, classifier in subscribers:
        _read(source, classifier, limiter)


def subscribe(classifier: Classifier, limiter: Limiter) -> None:
    """
    Let a classifier have the rules of the applications in this process, those to come too.

    Args:
        classifier: Gets the rules.
        limiter: Gets the shares and caps that come with them; as long as it lives.

    Thread safety: may be called from any thread.
    """
    with _lock:
        _subscribers[limiter] = classifier
        sources = [source for one in _sources if (source := one()) is not None]
    for source in sources:
        _read(source, classifier, limiter)


def give(
    rules: Iterable[RouteRule], classifier: Classifier, limiter: Limiter | None = None
) -> list[ConfigError]:
    """
    Add as many rules as make sense together; those that contradict others are left out.

    Args:
        rules: In the order of their weight.
        classifier: Gets them.
        limiter: Gets the shares and caps.

    Returns:
        What is wrong with those that were left out.
    """
    rules = list(rules)
    errors: list[ConfigError] = []
    try:
        classifier.add_rules(rules)
    except ConfigError:
        for rule in rules:
            try:
                classifier.add_rules([rule])
            except ConfigError as error:
                errors.append(error)
    if limiter is not None:
        define(limiter, classifier.policies.values())
    return errors


def _read(source: Source, classifier: Classifier, limiter: Limiter) -> None:
    """Nothing that is wrong in an application's rules may keep it from being served."""
    try:
        for error in give(source(), classifier, limiter):
            _log.error("admission: %s; the rule is left out", error)
    except Exception:
        _log.exception("admission: the rules of an application cannot be read; left out")


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
