"""``python -m tests.soak``: half an hour, or as many minutes as are given."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.soak.run import Soak

__all__: list[str] = []


def _main() -> int:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    with tempfile.TemporaryDirectory() as directory:
        soak = Soak(Path(directory), minutes * 60, clients=12, pause=10.0, seed=1)
        soak.run()
    for name, answers in soak.answers.items():
        print(f"{name}: {dict(sorted(answers.items()))}")
    print(f"disturbed: {dict(soak.disturbed)}")
    for name, samples in soak.samples.items():
        third = len(samples) // 3
        print(f"{name}: {samples[third]} ... {samples[-1]}")
    for problem in soak.problems:
        print(f"PROBLEM {problem}")
    print("0 problems" if not soak.problems else f"{len(soak.problems)} problems")
    return bool(soak.problems)


if __name__ == "__main__":
    sys.exit(_main())
