"""An ordinary gunicorn configuration with hooks of its own; the last line adds admission."""

from __future__ import annotations

from typing import Any

from gunicorn_admission.hooks import install

bind = "127.0.0.1:8000"
worker_class = "gthread"
threads = 8

# Admission leaves what it decided in the environ, so the access log can show it.
accesslog = "-"
access_log_format = (
    '"%(r)s" %(s)s %(M)s ms'
    " priority=%({gunicorn_admission.priority}e)s"
    " queue_delay=%({gunicorn_admission.queue_delay}e)s"
)


def post_worker_init(worker: Any) -> None:
    """A hook that was here before admission; it goes on being called."""
    worker.log.info("our own post_worker_init ran in worker %s", worker.pid)


def post_request(worker: Any, req: Any, environ: Any, resp: Any) -> None:
    """Admission uses this hook too; ours still sees every request."""
    worker.log.info("our own post_request saw %s", req.path)


install(globals(), routes={"/payments": "high", "/reports": "low", "/healthz": "exempt"})
