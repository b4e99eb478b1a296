"""
Who sends webhooks: one sender a file, with how its requests are verified and what it promises.

Start at ``provider.py`` (the order of the steps, the same for all), then ``github.py`` (the
shortest sender) and ``facts.py`` (deadlines, retries and ids as data). ``registry.py`` finds a
sender by name. To verify::

    provider = load_provider("stripe")
    outcome = provider.verify(body, headers, url, [Secret("whsec_...")], time.time())
    if isinstance(outcome, Verified):
        keep(outcome.items)

Nothing here reads a clock, a configuration or the network; only PayPal's certificates are
fetched, by an object that can be replaced. A hostile request gives a reason and never an error.
"""

from __future__ import annotations

from gunicorn_admission.webhooks.providers.facts import Facts, Tolerance
from gunicorn_admission.webhooks.providers.outcome import (
    IdSource,
    Item,
    Outcome,
    Reason,
    Refused,
    Verified,
)
from gunicorn_admission.webhooks.providers.provider import Provider
from gunicorn_admission.webhooks.providers.registry import load_provider, provider_names
from gunicorn_admission.webhooks.providers.secret import Secret

__all__ = [
    "Facts",
    "IdSource",
    "Item",
    "Outcome",
    "Provider",
    "Reason",
    "Refused",
    "Secret",
    "Tolerance",
    "Verified",
    "load_provider",
    "provider_names",
]
