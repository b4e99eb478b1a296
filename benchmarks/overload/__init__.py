"""
Overload, and what a user would pick against it: the same requests for each contender.

``scenarios`` says what happens, ``contenders`` to whom; ``run`` does it; ``table`` and
``goals`` read what it wrote. ``loadgen`` is the load, ``app`` the server under it.
"""
