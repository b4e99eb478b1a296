"""
Who is woken, by what, in which words.

There are three boundaries: events cannot enter, verified events cannot be published, one named
consumer refuses (``answers.py``), fails or lags (``watch.py``). A page (``page.py``) names the
consumer, the event, the ceiling and the decision in its first line (``wording.py``). ``book.py``
keeps one page for each consumer, window and decision and counts the rest, in the transaction that
took the decision; ``pager.py`` tells the channels. ``alarm.py`` is for the case that the store
itself is what fails.
"""

from __future__ import annotations

from gunicorn_admission.webhooks.pages.alarm import Alarm
from gunicorn_admission.webhooks.pages.answers import pages_about
from gunicorn_admission.webhooks.pages.book import raise_page, resolve_page
from gunicorn_admission.webhooks.pages.channels.channel import Channel, ChannelError
from gunicorn_admission.webhooks.pages.channels.choose import choose_channels
from gunicorn_admission.webhooks.pages.page import (
    Boundary,
    CeilingReached,
    Condition,
    Page,
    Severity,
)
from gunicorn_admission.webhooks.pages.pager import Pager

__all__ = [
    "Alarm",
    "Boundary",
    "CeilingReached",
    "Channel",
    "ChannelError",
    "Condition",
    "Page",
    "Pager",
    "Severity",
    "choose_channels",
    "pages_about",
    "raise_page",
    "resolve_page",
]
