"""An intake for tests: a source for each sender of ``sender_cases``, and one for load."""

from __future__ import annotations

import os
import time
from pathlib import Path

from gunicorn_admission.webhooks.intake import Intake, Source
from gunicorn_admission.webhooks.providers.paypal import PayPal
from tests.sender_cases import SENDERS
from tests.senders import AT, URL

SECRET = "It's a Secret to Everybody"


def _clock() -> float:
    return AT if os.environ.get("TEST_CLOCK") == "fixed" else time.time()


def _certificate(url: str) -> bytes:
    """What the test signs with, instead of what PayPal keeps at the URL."""
    return Path(os.environ["ADMISSION_TEST_DIR"], "paypal.pem").read_bytes()


application = Intake(
    os.environ["TEST_STORE_URL"],
    [
        *(
            Source(
                sender.name,
                provider=PayPal(certificates=_certificate)
                if sender.name == "paypal"
                else sender.provider,
                secrets=[key.secret for key in sender.keys],
                url=URL,
            )
            for sender in SENDERS
        ),
        Source("load", provider="github", secrets=[SECRET], priority="high"),
        Source("small", provider="github", secrets=[SECRET], max_body=1000, priority="low"),
        Source("hurried", provider="github", secrets=[SECRET], deadline=1),
    ],
    clock=_clock,
    prefix=os.environ.get("TEST_PREFIX", "/hooks"),
)
