"""Keep stalled senders from filling gunicorn's error log."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["quiet_stalled_senders"]


class _StalledSender(logging.Filter):
    """Drops gunicorn's traceback for a socket that gave nothing within ``read_timeout``."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep every record but that one."""
        return not (
            record.exc_info
            and isinstance(record.exc_info, tuple)
            and isinstance(record.exc_info[1], BlockingIOError)
            and str(record.msg).startswith("Socket error processing request")
        )


def quiet_stalled_senders(worker_log: Any) -> None:
    """
    Drop one ERROR with traceback a stalled client, which anybody could cause at will.

    The receive timeout that we set shows up in gunicorn as an unexpected socket error.
    """
    error_log = getattr(worker_log, "error_log", None)
    if error_log is not None and not any(
        isinstance(one, _StalledSender) for one in error_log.filters
    ):
        error_log.addFilter(_StalledSender())
