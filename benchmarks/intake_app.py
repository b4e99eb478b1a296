"""The intake as it is measured: one source, whose events are GitHub's."""

from __future__ import annotations

from gunicorn_admission.webhooks.intake import Intake, Source

__all__ = ["SECRET", "application"]

SECRET = "not-a-real-secret"

application = Intake(None, [Source("git", provider="github", secrets=[SECRET])])
