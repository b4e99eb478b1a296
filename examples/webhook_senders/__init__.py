"""
Stand-ins for the senders of webhooks: they sign and retry as each provider documents.

Run ``python -m examples.webhook_senders --help`` in the root of the repository. ``signing.py``
signs, ``payloads.py`` makes events, ``rules.py`` says what is retried when, ``simulator.py``
sends. No provider is contacted; what a provider really does may differ from its documentation.
"""
