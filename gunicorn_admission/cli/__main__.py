"""Entry point of the command."""

from __future__ import annotations

import sys

from gunicorn_admission.cli.extras import MissingExtra, needs

__all__ = ["main"]


def main() -> None:
    """Run the command; the console script and ``python -m gunicorn_admission.cli``."""
    try:
        with needs("the command gunicorn-admission"):
            from gunicorn_admission.cli.verbs import root
        root(prog_name="gunicorn-admission")
    except MissingExtra as error:
        print(f"gunicorn-admission: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
