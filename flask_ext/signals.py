"""
What an application can listen to; never a signal for a request that is admitted.

Receivers run in the thread of the refused request and should return soon; one that raises is
logged and changes nothing about the answer. Behind gunicorn's executor a request that is
refused in front of the application never reaches it, and so sends nothing here: count those
with the metrics.
"""

from __future__ import annotations

import logging
from typing import Any

from blinker import NamedSignal, Namespace
from flask import Flask

__all__ = ["dependency_rejected", "request_shed", "send"]

_log = logging.getLogger("gunicorn_admission")
_signals = Namespace()

request_shed: NamedSignal = _signals.signal(
    "admission-request-shed",
    "A request was refused: by the gate in this application, or because a view raised Rejected. "
    "Sender: the application. Data: reason (Reason), priority (Priority), partition (str or None).",
)

dependency_rejected: NamedSignal = _signals.signal(
    "admission-dependency-rejected",
    "A call of a dependency was refused inside an application context, whatever the caller makes "
    "of it. Sender: the application. Data: name (str), reason (Reason), priority (Priority).",
)


def send(signal: NamedSignal, app: Flask, **data: Any) -> None:
    """Tell the receivers; what they raise is logged and goes no further."""
    if not signal.receivers:
        return
    try:
        signal.send(app, **data)
    except Exception:
        _log.exception("admission: a receiver of %s failed", signal.name)
