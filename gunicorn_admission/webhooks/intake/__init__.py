"""
The public endpoint: verify once, store durably, acknowledge.

Start at ``receive.py`` (the order of the steps) and ``source.py`` (who may post, by which rules).
``inbox.py`` is the one transaction, ``answer.py`` the few answers, ``app.py`` the WSGI application;
``register.py`` holds what operators do with the sources of a store, ``diagnose.py`` says why a
request was not believed.
"""

from __future__ import annotations

from gunicorn_admission.webhooks.intake.answer import Answer, Result
from gunicorn_admission.webhooks.intake.app import Intake, create
from gunicorn_admission.webhooks.intake.receive import Receiver
from gunicorn_admission.webhooks.intake.register import Register
from gunicorn_admission.webhooks.intake.source import Key, Source

__all__ = ["Answer", "Intake", "Key", "Receiver", "Register", "Result", "Source", "create"]
