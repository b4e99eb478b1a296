"""
The pure state machine: who may run now, who waits, who is refused.

Nothing here reads a clock, takes a lock, starts a thread or does I/O; ``now_ns``
always comes in. Standard library and attrs only. Start reading at ``controller.py``.
"""
