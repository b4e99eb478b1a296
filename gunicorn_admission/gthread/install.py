"""Installing admission into a worker that has just been initialised."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from typing import Any

from attrs import evolve, frozen

from gunicorn_admission.classify import Classifier
from gunicorn_admission.classify.announce import subscribe
from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.gthread.age import AgeGate
from gunicorn_admission.gthread.capabilities import look
from gunicorn_admission.gthread.executor import AdmissionExecutor
from gunicorn_admission.gthread.gate import ThreadGate, WorkerGate
from gunicorn_admission.gthread.node import join
from gunicorn_admission.gthread.quiet import quiet_stalled_senders
from gunicorn_admission.gthread.turns import ShortTurns
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.limiter.serving import limiter_for
from gunicorn_admission.observe import Reporter, start_reporting, use_gunicorn_logger
from gunicorn_admission.scoreboard import Row
from gunicorn_admission.settings import Settings
from gunicorn_admission.settings.derive import Resolved
from gunicorn_admission.status import Aside, Probes, Readiness

__all__ = ["Installed", "finish_request", "install"]

_log = logging.getLogger("gunicorn_admission")
_NEVER = 3600.0


@frozen
class Installed:
    """
    What :func:`install` has done to a worker.

    Attributes:
        mode: ``"executor"`` (waits in front of the threads), ``"gate"`` (waits in them),
            ``"age"`` (refuses what has waited too long, where one runs at a time) or ``"off"``.
        limiter: Decides; ``None`` when off.
        classifier: Tells the class of a request; ``None`` when off.
        reporter: Sends metrics; ``None`` when off.
        why: For ``gate`` and ``off``, the reason.
    """

    mode: str
    limiter: Limiter | None = None
    classifier: Classifier | None = None
    reporter: Reporter | None = None
    why: str = ""

    def stop(self) -> None:
        """Send the last metrics; the worker is about to exit."""
        if self.reporter is not None:
            self.reporter.stop()


def install(worker: Any, settings: Settings) -> Installed:
    """
    Put admission into a worker: the best mode that it allows, said in one log line.

    Call it once a worker, after ``init_process`` has loaded the application and before
    ``run`` starts: that is ``post_worker_init``. A second call changes nothing.

    Raises:
        ConfigError: A setting does not fit the worker's threads.
    """
    done = getattr(worker, "admission", None)
    if isinstance(done, Installed):
        return done
    use_gunicorn_logger(worker.log)
    installed = _install(worker, settings)
    worker.admission = installed
    wsgi = getattr(worker, "wsgi", None)
    if installed.mode == "off" and settings.status_path is not None and wsgi is not None:
        # Or whoever switches admission off would have the probes fail.
        worker.wsgi = Aside(wsgi, Probes(settings.status_path, Readiness()))
    if installed.classifier is not None and installed.limiter is not None:
        # What applications say of their views counts in front of the threads.
        subscribe(installed.classifier, installed.limiter)
    return installed


def finish_request(worker: Any, environ: Mapping[str, Any]) -> None:
    """End a request whose response was never closed; for ``post_request``, harmless twice."""
    exchange = environ.get("gunicorn_admission.token")
    if exchange is not None:
        exchange.end()


def _install(worker: Any, settings: Settings) -> Installed:
    if settings.mode == "off":
        return _off("mode = off")
    if getattr(worker, "wsgi", None) is None:
        return _off(f"{type(worker).__name__} does not serve WSGI; use it with gthread")
    can = look(worker)
    threads = settings.threads or worker.cfg.threads
    if can.executor:
        resolved = settings.derive(threads, waiting_holds_thread=False)
        return _install_executor(worker, settings, resolved, can)
    if any(base.__name__ == "SyncWorker" for base in type(worker).__mro__):
        return _install_age(worker, settings)
    name = type(worker).__name__
    concurrency = _gate_concurrency(worker, name)
    if concurrency is None:
        return _off(f"{name} runs one request at a time; use -k gthread --threads 8 or more")
    resolved = settings.derive(settings.threads or concurrency, waiting_holds_thread=True)
    if resolved.off_reason is not None:
        return _off(resolved.off_reason)
    limiter = _limiter(worker, settings, resolved)
    classifier = _classifier(settings)
    worker.wsgi = WorkerGate(worker, limiter, classifier, settings)
    worker.wsgi.readiness = Readiness(limiter.statistics, _row(worker))
    why = f"{name} has no thread pool of a known shape"
    _announce("gate", resolved, why)
    return Installed("gate", limiter, classifier, _report(worker, limiter, settings), why)


def _install_executor(worker: Any, settings: Settings, resolved: Resolved, can: Any) -> Installed:
    limiter = _limiter(worker, settings, resolved)
    classifier = _classifier(settings)
    pool = AdmissionExecutor(
        worker, can, limiter, classifier, settings, resolved.threads, time.monotonic_ns
    )
    worker.wsgi = ThreadGate(worker, limiter, classifier, settings, pool.local, lambda: pool.wanted)
    worker.wsgi.readiness = Readiness(limiter.statistics, _row(worker))
    replaced, worker.tpool = worker.tpool, pool
    replaced.shutdown(wait=False)
    quiet_stalled_senders(worker.log)
    _announce("executor", resolved, "")
    if can.http2:
        _log.warning(
            "admission: with HTTP/2 each connection holds one of the %d threads while it is open, "
            "so as many clients hold them all; better let a proxy in front speak HTTP/2",
            resolved.threads,
        )
    return Installed("executor", limiter, classifier, _report(worker, limiter, settings))


def _install_age(worker: Any, settings: Settings) -> Installed:
    # Sizes and bounds on them are for workers that run more than one request, and one that
    # hangs is killed by gunicorn's own timeout.
    sizes = evolve(
        settings, limit=1, min_limit=None, max_limit=None, max_queue=0, reserve=None, threads=None,
        stall_after=_NEVER, recycle_after=None,
    )  # fmt: skip
    resolved = sizes.derive(1, waiting_holds_thread=False)
    limiter = _limiter(worker, sizes, resolved)
    classifier = _classifier(settings)
    worker.wsgi = AgeGate(worker, limiter, classifier, settings)
    worker.wsgi.readiness = Readiness(limiter.statistics, _row(worker))
    why = "it runs one request at a time; -k gthread --threads 8 does more"
    _log.info(
        "admission: age, %s refuses what is older than %g s, %s; %s",
        type(worker).__name__,
        resolved.policy.max_wait_ns / SECOND,
        settings.mode,
        why,
    )
    return Installed("age", limiter, classifier, _report(worker, limiter, settings), why)


def _gate_concurrency(worker: Any, name: str) -> int | None:
    """How many requests a worker without a pool runs at once; ``None`` for one."""
    if name in ("GeventWorker", "GeventPyWSGIWorker", "EventletWorker"):
        return int(worker.cfg.worker_connections)
    if name == "TornadoWorker":
        return None
    return int(worker.cfg.threads) if worker.cfg.threads > 1 else None


def _classifier(settings: Settings) -> Classifier:
    return Classifier(settings, script_name=os.environ.get("SCRIPT_NAME", ""))


def _limiter(worker: Any, settings: Settings, resolved: Resolved) -> Limiter:
    limiter = limiter_for(resolved)
    join(worker, limiter, settings, resolved)
    return limiter


def _row(worker: Any) -> Row | None:
    """The worker's row on the page that it shares with its siblings, if the master gave one."""
    row: Row | None = getattr(worker, "admission_row", None)
    return row


def _report(worker: Any, limiter: Limiter, settings: Settings) -> Reporter:
    limiter.observe(ShortTurns())
    return start_reporting(
        limiter, settings, worker.log, cfg=worker.cfg, worker=_slot(worker), row=_row(worker)
    )


def _slot(worker: Any) -> int | None:
    """Which of several workers this is; ``None`` for the only one, whose gauges need no number."""
    if worker.cfg.workers == 1:
        return None
    # Without our pre_fork hook (``-k`` alone) the order of birth has to do.
    return int(getattr(worker, "admission_slot", (worker.age - 1) % worker.cfg.workers))


def _off(why: str) -> Installed:
    _log.warning("admission: off: %s", why)
    return Installed("off", why=why)


def _announce(mode: str, resolved: Resolved, why: str) -> None:
    policy = resolved.policy
    _log.info(
        "admission: %s, limit %s of %d threads (from %d to %d), queue %d, %s%s",
        mode,
        resolved.limit,
        resolved.threads,
        policy.min_limit,
        policy.max_limit,
        policy.max_queue,
        policy.mode.value,
        f"; {why}" if why else "",
    )
