"""
Webhooks that are never lost and never taken twice.

Start at ``providers`` (who sends, and how a request is verified).
"""
