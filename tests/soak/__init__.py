"""
Mixed load for a long time: ``make soak`` for half an hour, ``test_soak.py`` for seconds.

``clients.py`` is who asks, ``watch.py`` what is measured, ``run.py`` puts two servers under
that load: one that is left alone, where nothing may grow, and one that is recycled, reloaded
and killed, where nothing may get lost. Start reading there.
"""
