"""
For Django on a threaded WSGI server. Needs the extra ``django``.

``webhooks.py`` is a view that takes webhooks in.
"""

from __future__ import annotations
