"""
Hooks of the user and hooks of ours, one behind the other.

The user's runs first and ours in ``finally``: whatever theirs raises reaches gunicorn as
before, but can neither leak a slot nor skip ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

__all__ = ["COMPOSERS", "MARK", "Hook"]

Hook: TypeAlias = Callable[..., Any]

MARK: Final = "__gunicorn_admission__"
"""Attribute of hooks that have ours in them."""

# gunicorn counts positional parameters (`*args` is refused), so each arity is written out.


def _server_or_worker(theirs: Hook, ours: Hook) -> Hook:
    def hook(subject: Any) -> None:
        try:
            theirs(subject)
        finally:
            ours(subject)

    return hook


def _server_and_worker(theirs: Hook, ours: Hook) -> Hook:
    def hook(server: Any, worker: Any) -> None:
        try:
            theirs(server, worker)
        finally:
            ours(server, worker)

    return hook


def _post_request(theirs: Hook, ours: Hook) -> Hook:
    def hook(worker: Any, req: Any, environ: Any, resp: Any) -> None:
        try:
            theirs(worker, req, environ, resp)
        finally:
            ours(worker, req, environ, resp)

    return hook


def _nworkers_changed(theirs: Hook, ours: Hook) -> Hook:
    def hook(server: Any, new_value: Any, old_value: Any) -> None:
        try:
            theirs(server, new_value, old_value)
        finally:
            ours(server, new_value, old_value)

    return hook


COMPOSERS: Final[dict[str, Callable[[Hook, Hook], Hook]]] = {
    "on_starting": _server_or_worker,
    "on_reload": _server_or_worker,
    "post_worker_init": _server_or_worker,
    "post_request": _post_request,
    "pre_fork": _server_and_worker,
    "child_exit": _server_and_worker,
    "worker_exit": _server_and_worker,
    "nworkers_changed": _nworkers_changed,
}
"""How each hook that we use is put together from theirs and ours."""
