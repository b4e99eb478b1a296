"""The states of a delivery and the modes of a subscription."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

__all__ = ["FINISHED", "Mode", "NEVER", "State", "WAITING"]


class Mode(StrEnum):
    """What becomes of the deliveries of a subscription. All modes go on collecting."""

    #: Workers take them and run the consumer.
    ACTIVE = "active"
    #: Workers take them, record that they came, and run nothing.
    SHADOW = "shadow"
    #: Nobody takes them for now; their age still counts against the recovery objective.
    PAUSED = "paused"
    #: Nobody takes them, and nobody is expected to.
    DISABLED = "disabled"


class State(StrEnum):
    """Where a delivery stands."""

    #: Waits for a worker, or for the end of a backoff.
    PENDING = "pending"
    #: A worker has it, until its lease ends.
    LEASED = "leased"
    #: Waits for the next window of a ceiling.
    DEFERRED = "deferred"
    #: Waits for a person: a ceiling sent it there.
    REVIEW = "review"
    #: Waits for a person: a worker died and its effect may have happened or not.
    UNCERTAIN = "uncertain"
    #: Its effect is durable.
    COMPLETED = "completed"
    #: Its attempts ended: a dead letter.
    DEAD = "dead"
    #: A ceiling refused it.
    REFUSED = "refused"
    #: Seen in shadow, without an effect.
    SKIPPED = "skipped"


#: Nothing more happens to these unless somebody asks for it.
FINISHED: Final = (State.COMPLETED, State.DEAD, State.REFUSED, State.SKIPPED)

#: These wait for a person.
WAITING: Final = (State.REVIEW, State.UNCERTAIN)

#: When what waits for a person may be taken: past every clock, and fits 64 bits.
NEVER: Final = 2**62
