"""
Contenders times scenarios, in turn: a line a run, and their figures in a file.

    python -m benchmarks.overload.run --scenarios BFG --contenders ours,gthread16 --rounds 3

Rounds are the outer loop and scenarios the next, so that all contenders of a scenario run
side by side in time and get the same requests; their order is shuffled in each round.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.overload.contenders import CONTENDERS
from benchmarks.overload.figures import OUT, Figures, append, load
from benchmarks.overload.measure import measure
from benchmarks.overload.scenarios import PROFILES, scenarios
from benchmarks.overload.table import line, summary
from benchmarks.processes import DidNotStart, end_on_sigterm

__all__ = ["runs"]


def runs(
    contenders: Sequence[str],
    keys: Sequence[str],
    *,
    rounds: int = 1,
    profile: str = "quick",
    scale: float = 1.0,
    keep_alive: bool = False,
    seed: int = 1,
) -> Iterator[Figures]:
    """Run everything; what cannot run here is said on stderr and left out."""
    known = scenarios(profile, scale)
    able = []
    for name in contenders:
        missing = CONTENDERS[name].missing()
        if missing is None:
            able.append(name)
        else:
            print(f"{name} is left out: this machine has no {missing}", file=sys.stderr)
    for round in range(rounds):
        for key in keys:
            order = random.Random(f"{seed} {round} {key}").sample(able, len(able))
            for name in order:
                try:
                    yield measure(
                        name,
                        key,
                        known[key],
                        keep_alive=keep_alive,
                        seed=seed + round,
                        round=round,
                        profile=profile,
                    )
                except (DidNotStart, RuntimeError) as error:
                    # One failure must not cost the hour that the others took.
                    print(f"{name} in {key} failed: {error}", file=sys.stderr)


def _names(known: Sequence[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return parse


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = list(scenarios("quick"))
    everything = list(CONTENDERS)
    parser.add_argument("--contenders", type=_names(everything), default=everything)
    parser.add_argument("--scenarios", type=_names(known), default=known)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", choices=PROFILES, default=PROFILES[0])
    parser.add_argument("--keep-alive", action="store_true", help="not a connection a request")
    parser.add_argument("--scale", type=float, default=1.0, help="shorten phases; smoke runs only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT, help="file of JSON lines to start anew")
    parser.add_argument("--append", action="store_true", help="keep what is in that file")
    options = parser.parse_args()
    end_on_sigterm()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if not options.append:
        options.out.write_text("")
    for figures in runs(
        options.contenders,
        options.scenarios,
        rounds=options.rounds,
        profile=options.profile,
        scale=options.scale,
        keep_alive=options.keep_alive,
        seed=options.seed,
    ):
        append(options.out, figures)
        print(line(figures), flush=True)
    taken = load([options.out])
    print()
    summary(taken)
    return 0 if taken else 1


if __name__ == "__main__":
    sys.exit(main())
