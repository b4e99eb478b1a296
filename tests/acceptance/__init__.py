"""
What the project promises, on real servers: ours and the same gunicorn without it, at once.

``side_by_side`` runs both and collects what their clients and handlers saw, ``figures``
reads that. Bounds are shares and comparisons within the run, not speeds.
"""
