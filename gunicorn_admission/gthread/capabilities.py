"""
The private parts of gunicorn that are used, found out by looking, not by version.

=============================  ============  =====================================
part                           gunicorn      used for
=============================  ============  =====================================
``tpool.submit(handle, conn)`` 20.1 to 27    the executor: without it the gate is used
``worker.wsgi``                20.1 to 27    the gate
``worker.nr``                  20.1 to 27    sheds must not use up ``max_requests``
``worker.futures``             20.1 to 23    its absence allows our lighter future
``keepalived_conns``           24.0 to 27    keep-alive after a raw refusal
``accept(listener)``           24.0 to 27    several accepts a turn while refusing
``murder_keepalived``          24.0 to 27    deadlines on the main loop
``set_accept_enabled``         24.0 to 27    leaving connections to siblings
``arbiter.num_workers``        20.1 to 27    the count after a hung worker was replaced
``conn.close(graceful=...)``   26.0 to 27    lingering without standing still
=============================  ============  =====================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Capabilities", "look"]


class Capabilities(NamedTuple):
    """
    What a worker can do for us.

    Attributes:
        executor: Its thread pool may be replaced.
        light_future: Its main loop uses nothing of a future but callback and result.
        pair_result: ``handle`` returns ``(keepalive, conn)`` rather than ``keepalive``.
        keepalived: It keeps idle connections in ``keepalived_conns`` on the main loop.
        main_loop: Its main loop can be joined: turns, poller, accepting.
        siblings: Other workers accept from the same sockets.
        plain: Connections carry HTTP/1 without TLS, so their bytes can be read in front of
            the parser.
        proxied: Connections start with a PROXY protocol header.
        http2: Clients may speak HTTP/2.
    """

    executor: bool
    light_future: bool
    pair_result: bool
    keepalived: bool
    main_loop: bool
    siblings: bool
    plain: bool
    proxied: bool
    http2: bool


_MAIN_LOOP = (
    "method_queue",
    "murder_keepalived",
    "poller",
    "set_accept_enabled",
    "wait_for_and_dispatch_events",
)


def look(worker: Any) -> Capabilities:
    """Find out what a worker, which has been initialised, can do."""
    cfg = worker.cfg
    old = hasattr(worker, "futures")
    h2 = "h2" in (getattr(cfg, "http_protocols", None) or ())
    protocol = getattr(cfg, "protocol", "http")
    return Capabilities(
        executor=all(hasattr(worker, name) for name in ("tpool", "handle", "enqueue_req", "nr"))
        and hasattr(worker.tpool, "submit"),
        light_future=not old and hasattr(worker, "method_queue"),
        pair_result=old,
        keepalived=hasattr(worker, "keepalived_conns")
        and hasattr(worker, "on_client_socket_readable"),
        main_loop=all(hasattr(worker, name) for name in _MAIN_LOOP),
        siblings=cfg.workers > 1 and not cfg.reuse_port,
        plain=not cfg.is_ssl and not h2 and protocol == "http",
        http2=h2,
        proxied=bool(getattr(cfg, "proxy_protocol", False))
        and getattr(cfg, "proxy_protocol", "off") != "off",
    )
