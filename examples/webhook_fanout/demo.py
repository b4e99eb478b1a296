"""
Webhooks under stress: a flood, an exhausted ceiling, a killed worker; nothing lost, nothing twice.

    python demo.py [--quick]
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from books import CONSUMERS, Books
from load import Flood, Senders
from rich.console import Console
from rich.table import Table
from stage import PATIENCE, Stage, stage

ANALYTICS = "usage-analytics"


def until(what: str, holds: Callable[[], bool]) -> None:
    """Wait until something holds; end the demo where it does not."""
    ends = time.monotonic() + 2 * PATIENCE
    while not holds():
        if time.monotonic() > ends:
            raise SystemExit(f"waited in vain: {what}")
        time.sleep(0.05)


def until_done(shop: Stage, consumer: str, count: int) -> None:
    """Wait until so many events had their effect at a consumer."""
    until(f"{consumer}: {count} events", lambda: Books.read(shop.url).done(consumer) >= count)


def set_up(shop: Stage, allowance: int) -> None:
    """Make the tables, the subscriptions and the ceiling, with the commands of an operator."""
    shop.command("db", "upgrade")
    subprocess.run(
        [sys.executable, "-c", "import app; app.make_table()"],
        cwd=Path(__file__).resolve().parent, env=shop.environment, check=True,
    )  # fmt: skip
    for name in CONSUMERS:
        shop.command("subscriptions", "create", name, "--lease", "2s", "--backoff", "200ms")
    shop.command(
        "gate",
        "set",
        ANALYTICS,
        str(allowance),
        "requests",
        "--per",
        "24h",
        "--at-ceiling",
        "defer",
    )


def play(shop: Stage, console: Console, each: int) -> list[str]:
    """Play all acts. Returns what went wrong, which should be nothing."""
    allowance = each
    set_up(shop, allowance)
    address = shop.gunicorn()
    victim = shop.worker("worker-1")
    shop.worker("worker-2")
    senders = Senders(address, shop.environment)

    console.rule("1. Three senders and a flood of visitors")
    with Flood(address) as flood:
        senders.send(each)
    refused = flood.answers["503"]
    console.print(f"  visitors: {flood.answers['200']} reports served, {refused} refused at once")
    console.print(f"  senders: {dict(senders.answers)}, {senders.retried} retries by their rules")

    console.rule("2. Kill a worker in the middle of its work")
    sent = len(senders.taken)
    until_done(shop, "entitlements", sent)
    sending = threading.Thread(target=senders.send, args=(each,))
    sending.start()
    until_done(shop, "entitlements", sent + each // 2)
    victim.send_signal(signal.SIGKILL)
    done = Books.read(shop.url).done("entitlements")
    sending.join()
    shop.worker("worker-3")
    total = len(senders.taken)
    for name in CONSUMERS[:2]:
        until_done(shop, name, total)
    console.print(f"  killed after {done} of {total}; the others took over what it held")
    console.print(f"  senders: {dict(senders.answers)}, {senders.retried} retries by their rules")

    console.rule("3. The ceiling of one consumer")
    books = Books.read(shop.url)
    for name in CONSUMERS:
        console.print(f"  {name}: {books.done(name)} of {total}")
    until("the page", lambda: bool(_pages(shop)))
    for line in _pages(shop):
        console.print(f"  page: {line}", soft_wrap=True)
    faults = []
    if books.done(ANALYTICS) != allowance:
        faults.append(f"{ANALYTICS} did {books.done(ANALYTICS)} of {allowance} that it may")

    console.rule("4. Raise it: what was deferred is done")
    shop.command("gate", "set", ANALYTICS, str(10 * total), "requests", "--per", "24h")
    until_done(shop, ANALYTICS, total)
    console.print(f"  {shop.command('gate', 'audit')}", soft_wrap=True)
    books = Books.read(shop.url)
    console.print(_table(senders, books))
    return (
        faults + [f"{event} was given up" for event in senders.lost] + books.faults(senders.taken)
    )


def _pages(shop: Stage) -> list[str]:
    """What the workers have told about deferred work; whichever was first tells it."""
    lines = "".join(shop.log(f"worker-{number}") for number in (1, 2, 3)).splitlines()
    return [line.partition("WARNING ")[2] for line in lines if " DEFERRED " in line]


def _table(senders: Senders, books: Books) -> Table:
    table = Table(title="In the end")
    for column in ("", "events", "lost", "twice"):
        table.add_column(column, justify="left" if not column else "right")
    sent = len(senders.taken) + len(senders.lost)
    table.add_row("sent", str(sent), "", "")
    table.add_row("answered 2xx", str(len(senders.taken)), str(len(senders.lost)), "")
    lost = len(senders.taken - books.stored)
    table.add_row("stored", str(len(books.stored)), str(lost), f"0 ({books.duplicates} came again)")
    for name, counts in books.effects.items():
        twice = sum(times > 1 for times in counts.values())
        missing = len(books.stored - set(counts))
        table.add_row(name, str(len(counts)), str(missing), str(twice))
    return table


def main() -> int:
    """Run the demo; 1 when something was lost or done twice."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer events")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    console = Console()
    with tempfile.TemporaryDirectory() as name, stage(Path(name)) as shop:
        faults = play(shop, console, each=40 if options.quick else 200)
    for fault in faults:
        console.print(f"FAULT: {fault}", style="bold red")
    if not faults:
        console.print("Nothing was lost and nothing was done twice.", style="bold green")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
