"""What routing asks of a subscription: is this event wanted, and after which other one."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import attrs

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.fanout.fields import Fields
from gunicorn_admission.webhooks.fanout.filters import Filter
from gunicorn_admission.webhooks.fanout.paths import Path
from gunicorn_admission.webhooks.providers.payload import Json

__all__ = ["Route"]

_log = logging.getLogger("gunicorn_admission.fanout")


@attrs.frozen
class Route:
    """Name, filter and ordering of one subscription, ready for use."""

    name: str
    filter: Filter
    order: Path | None

    @classmethod
    def of(cls, name: str, pattern: Mapping[str, Json], order_by: str | None) -> Route:
        """
        Return the route of a row.

        A filter that this release cannot read was written past it. It lets everything through:
        a consumer can leave out what came too much, and never get back what did not come.
        """
        try:
            return cls(name, Filter(pattern), Path(order_by) if order_by else None)
        except ConfigError as error:
            _log.error(
                "subscription %s gets every event, its filter cannot be read: %s", name, error
            )
            return cls(name, Filter({}), None)

    def wants(self, fields: Fields) -> bool:
        """Return whether the subscription is to have an event."""
        return self.filter.matches(fields)

    def order_key(self, fields: Fields) -> str | None:
        """Return what the event is ordered by; ``None`` where it is free."""
        return self.order.find(fields) if self.order else None
