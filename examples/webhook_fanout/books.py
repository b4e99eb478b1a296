"""What is in the database at the end, held against what the senders were told."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sqlalchemy import create_engine, text

CONSUMERS = ("entitlements", "invoice-projection", "usage-analytics")


@dataclass(frozen=True)
class Books:
    """Events that are stored, and each effect that happened at each consumer."""

    stored: set[str]
    duplicates: int
    effects: dict[str, Counter[str]]

    @classmethod
    def read(cls, url: str) -> Books:
        """Read them with plain SQL, as somebody would who believes nothing of the rest."""
        with create_engine(url).connect() as connection:
            events = connection.execute(
                text("SELECT source || '/' || event_id, duplicates FROM webhook_event")
            ).all()
            found: dict[str, Counter[str]] = {name: Counter() for name in CONSUMERS}
            for consumer, event in connection.execute(
                text("SELECT consumer, event FROM shop_effect")
            ):
                found[consumer][event] += 1
        return cls({event for event, _ in events}, sum(again for _, again in events), found)

    def done(self, consumer: str) -> int:
        """Events that had their effect at a consumer."""
        return len(self.effects[consumer])

    def faults(self, taken: set[str]) -> list[str]:
        """What was lost or done twice; empty when nothing was."""
        found = []
        if taken - self.stored:
            found.append(f"{len(taken - self.stored)} events were answered 2xx and are not stored")
        for name, counts in self.effects.items():
            missing = self.stored - set(counts)
            twice = [event for event, times in counts.items() if times > 1]
            if missing:
                found.append(f"{name}: {len(missing)} events had no effect")
            if twice:
                found.append(f"{name}: {len(twice)} events had their effect twice")
        return found
