"""How senders sign, for tests: the signers of the example, which import nothing that is tested."""

from __future__ import annotations

from examples.webhook_senders.signing import *  # noqa: F403
