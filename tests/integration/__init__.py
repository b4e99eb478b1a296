"""Tests against real servers; ``server.py`` starts them, ``apps.py`` is what they serve."""
