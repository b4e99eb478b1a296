"""The command: send events of one provider to a URL, and say what became of them."""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from pathlib import Path

from .payloads import MAKERS
from .simulator import Simulator, signing_key


def main(arguments: list[str] | None = None) -> int:
    """Run it; 1 when an event was lost."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.webhook_senders",
        description="Stand in for a provider: sign and retry as its documentation says. No "
        "provider is contacted.",
    )
    parser.add_argument("provider", choices=sorted(MAKERS))
    parser.add_argument("url", help="such as http://127.0.0.1:8000/hooks/git")
    parser.add_argument("--secret", required=True, metavar="env:NAME|file:PATH")
    parser.add_argument("--public-url", help="for providers that sign it; by default the URL")
    parser.add_argument("--count", type=int, default=10, help="events")
    parser.add_argument("--first", type=int, default=1, help="number of the first event")
    parser.add_argument("--threads", type=int, default=4, help="deliveries at once")
    parser.add_argument("--speed", type=float, default=60.0, help="retries come so much faster")
    parser.add_argument("--twice", action="store_true", help="send each event again at the end")
    options = parser.parse_args(arguments)
    key = signing_key(options.provider, _read(parser, options.secret))
    simulator = Simulator(
        options.provider, key, options.url, public_url=options.public_url, speed=options.speed
    )
    numbers = list(range(options.first, options.first + options.count))
    began = time.monotonic()
    _deliver(simulator, numbers * (2 if options.twice else 1), options.threads)
    outcome, rules = simulator.outcome, simulator.rules
    print(
        json.dumps(
            {
                "provider": options.provider,
                "delays": "documented" if rules.documented else "assumed",
                "delivered": len(outcome.delivered),
                "lost": len(outcome.lost),
                "retried": outcome.retried,
                "answers": dict(sorted(outcome.answers.items())),
                "disabled": outcome.disabled,
                "seconds": round(time.monotonic() - began, 3),
            }
        )
    )
    return 1 if outcome.lost else 0


def _deliver(simulator: Simulator, numbers: list[int], threads: int) -> None:
    left, lock = iter(numbers), threading.Lock()

    def work() -> None:
        while True:
            with lock:
                number = next(left, None)
            if number is None:
                return
            simulator.deliver(number)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _read(parser: argparse.ArgumentParser, reference: str) -> str:
    kind, _, place = reference.partition(":")
    if kind == "env" and place in os.environ:
        return os.environ[place].strip()
    if kind != "file" or not Path(place).is_file():
        parser.error("--secret: no such variable or file; it takes env:NAME or file:PATH")
    return Path(place).read_text("utf-8").strip()


if __name__ == "__main__":
    sys.exit(main())
