"""
Senders by name. Each is a file of its own, imported when it is first asked for.

A sender from outside of this package is an entry point in the group
``gunicorn_admission.providers``, which names a subclass of
:class:`~gunicorn_admission.webhooks.providers.provider.Provider`::

    [options.entry_points]
    gunicorn_admission.providers =
        acme = acme_webhooks:Acme

It cannot replace a sender that is built in.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Final

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.webhooks.providers.provider import Provider

__all__ = ["ENTRY_POINTS", "load_provider", "provider_class", "provider_names"]

#: The group of entry points that name senders.
ENTRY_POINTS: Final = "gunicorn_admission.providers"

_BUILT_IN: Final = {
    "bitbucket": "Bitbucket",
    "github": "GitHub",
    "gitlab": "GitLab",
    "hookdeck": "Hookdeck",
    "hubspot": "HubSpot",
    "kit": "Kit",
    "linear": "Linear",
    "mailgun": "Mailgun",
    "paddle": "Paddle",
    "paypal": "PayPal",
    "sendgrid": "SendGrid",
    "shopify": "Shopify",
    "slack": "Slack",
    "square": "Square",
    "standard_webhooks": "StandardWebhooks",
    "stripe": "Stripe",
    "twilio": "Twilio",
    "zendesk": "Zendesk",
}


def provider_names() -> tuple[str, ...]:
    """Return the names of all senders, built in and installed, in order."""
    return tuple(sorted({*_BUILT_IN, *entry_points(group=ENTRY_POINTS).names}))


def provider_class(name: str) -> type[Provider]:
    """
    Return the class of a sender.

    Args:
        name: One of :func:`provider_names`.

    Raises:
        ConfigError: There is none of that name, or what is installed by it is no provider.
    """
    if name in _BUILT_IN:
        module = import_module(f"gunicorn_admission.webhooks.providers.{name}")
        found: object = getattr(module, _BUILT_IN[name])
    else:
        points = entry_points(group=ENTRY_POINTS, name=name)
        if not points:
            raise ConfigError(
                "provider", name, "a known sender", did_you_mean(name, provider_names())
            )
        found = next(iter(points)).load()
    if not (isinstance(found, type) and issubclass(found, Provider)):
        raise ConfigError(
            "provider",
            name,
            f"an entry point in {ENTRY_POINTS} that names a subclass of Provider",
            "correct the package that installs it",
        )
    return found


def load_provider(name: str) -> Provider:
    """
    Return a sender with its defaults.

    For others, call the class: ``Hookdeck(origin=load_provider("stripe"))``.

    Args:
        name: One of :func:`provider_names`.

    Raises:
        ConfigError: As :func:`provider_class`.
    """
    return provider_class(name)()
