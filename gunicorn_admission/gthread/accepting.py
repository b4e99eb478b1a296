"""
Accepting several connections a turn of the main loop, while refusing.

gunicorn accepts one connection a turn, and a turn costs five system calls beside: each of
them lets go of the interpreter, which the pool's threads then hold for a while. At ten
times the load that is where the main loop's time goes. What is sure to be refused is
answered before anything is made for it. At rest gunicorn's own way is kept.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

from gunicorn.workers import gthread

__all__ = ["accept_in_batches"]

_BATCH = 16
_HARMLESS = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED)


def accept_in_batches(
    worker: Any, refusing: Callable[[], bool], turn_away: Callable[[Any], bool]
) -> None:
    """
    Replace a worker's ``accept`` (gunicorn 24 and later; it is called on the main loop).

    Args:
        worker: Its main loop is not running yet.
        refusing: Whether requests are being refused right now.
        turn_away: Answers and closes a new socket if its request is sure to be refused.
    """
    one = worker.accept
    names: dict[Any, Any] = {}

    def accept(listener: Any) -> None:
        if not refusing():
            one(listener)
            return
        server = names.get(listener)
        if server is None:
            server = names[listener] = listener.getsockname()
        for _ in range(_BATCH):
            if worker.nr_conns >= worker.worker_connections:
                return
            try:
                sock, client = listener.accept()
            except OSError as error:
                if error.errno in _HARMLESS:
                    return
                raise
            if turn_away(sock):
                continue
            worker.nr_conns += 1
            worker.enqueue_req(gthread.TConn(worker.cfg, sock, client, server))

    worker.accept = accept
