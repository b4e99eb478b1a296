"""Who runs the command, for the audit trail."""

from __future__ import annotations

import getpass

__all__ = ["actor"]


def actor() -> str:
    """Return the user's name, or ``cli`` where there is none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in containers
        return "cli"
