"""
Virtual time around the real core: what would admission do with this load?

A run drives the same controller and the same limits as a worker does, so nothing is
modelled but what lies outside: clients, the balancer, threads, the GIL, databases. Needs
the extra ``sim``. Start with ``scenario.py`` (what can be described) and ``run.py`` (how it
is run); ``library/`` holds the built-in scenarios, ``report.py`` draws them.
"""

from __future__ import annotations

from gunicorn_admission.sim.scenario import (
    Class,
    Dependency,
    Fault,
    Phase,
    Scenario,
    Sender,
)

__all__ = ["Class", "Dependency", "Fault", "Phase", "Scenario", "Sender"]
