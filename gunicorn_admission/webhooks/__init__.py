"""
Webhooks that are never lost and never taken twice.

Start at ``providers`` (who sends, and how a request is verified) and ``store`` (where events are
kept). An event goes from ``intake`` through ``fanout`` to its consumers; ``gates`` say what each
of them may spend.
"""
