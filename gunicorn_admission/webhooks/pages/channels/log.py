"""Pages as log lines."""

from __future__ import annotations

import logging

from gunicorn_admission.webhooks.pages.page import Severity
from gunicorn_admission.webhooks.pages.wording import Notice

__all__ = ["LogChannel"]

_LEVELS = {
    Severity.CRITICAL: logging.ERROR,
    Severity.WARNING: logging.WARNING,
    Severity.INFO: logging.INFO,
}


class LogChannel:
    """
    One line for each notice on the logger ``gunicorn_admission.pages``.

    Thread safety: that of ``logging``.
    """

    name = "log"
    repeat = 900.0
    refreshes = False

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger("gunicorn_admission.pages")

    def send(self, notice: Notice) -> None:
        """Write the line. Never fails."""
        level = logging.INFO if notice.resolved_at else _LEVELS[notice.page.severity]
        self._logger.log(
            level,
            "%s",
            notice.text,
            extra={"page": notice.page.key, "consumer": notice.page.consumer},
        )
