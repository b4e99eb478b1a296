"""
What each consumer may spend, and the record of what was decided about each event.

Start at ``policy.py`` and ``ceiling.py`` (what is declared), then ``ledger.py`` (reserve, settle,
release) and ``answers.py`` (the decision). ``book.py`` alone changes what is used; ``audit.py``
proves it from the entries. Declare with::

    policy = GatePolicy([Ceiling(500, "requests", per="day", zone="Europe/Berlin")])
    store.write(lambda connection: configure(connection, "usage-analytics", policy, now=...))
"""

from __future__ import annotations

from gunicorn_admission.webhooks.gates.ceiling import Ceiling
from gunicorn_admission.webhooks.gates.configure import configure
from gunicorn_admission.webhooks.gates.decision import Decision, Kind, Reason, Standing
from gunicorn_admission.webhooks.gates.ledger import Ledger
from gunicorn_admission.webhooks.gates.policy import (
    AtCeiling,
    Charge,
    GatePolicy,
    check_retention,
)

__all__ = [
    "AtCeiling",
    "Ceiling",
    "Charge",
    "Decision",
    "GatePolicy",
    "Kind",
    "Ledger",
    "Reason",
    "Standing",
    "check_retention",
    "configure",
]
