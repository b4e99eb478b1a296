"""Who is compared: one entry each. All run one gunicorn worker of the same application."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.overload import proxies
from benchmarks.processes import Server, free_port, gunicorn, program

__all__ = ["CONTENDERS", "OURS", "PLAIN", "Contender"]

APP = "benchmarks.overload.app:app"
#: The goals are about this one, some of them relative to that one.
OURS, PLAIN = "ours", "gthread16"


@dataclass(frozen=True, kw_only=True)
class Contender:
    """
    A way to serve the application.

    Attributes:
        about: What it is and what was chosen for it.
        threads: Of gunicorn.
        more: Arguments of gunicorn.
        admission: Whether it has ours.
        variables: Environment of gunicorn.
        proxy: Program in front, or none.
        configuration: Of that.
    """

    about: str
    threads: int
    more: tuple[str, ...] = ()
    admission: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    proxy: str | None = None
    configuration: str = ""

    def missing(self) -> str | None:
        """The program that this machine does not have."""
        return self.proxy if self.proxy and program(self.proxy) is None else None

    def server(self, folder: Path, variables: Mapping[str, str]) -> Server:
        """It, ready to be started in a folder, with the application's environment."""
        port = behind = free_port()
        commands = []
        if self.proxy is not None:
            behind = free_port()
            configuration = folder / "proxy.conf"
            text = self.configuration
            for name, value in {"port": port, "behind": behind, "folder": folder}.items():
                text = text.replace(f"{{{name}}}", str(value))
            configuration.write_text(text)
            options = {
                "nginx": ["-p", str(folder), "-c", str(configuration)],
                "haproxy": ["-db", "-f", str(configuration)],
            }
            commands = [[self.proxy, *options[self.proxy]]]
        serve = gunicorn(APP, behind, self.threads, *self.more, admission=self.admission)
        return Server([serve, *commands], port, folder, {**self.variables, **variables})


def _haproxy(about: str, configuration: str) -> Contender:
    return Contender(about=about, threads=24, proxy="haproxy", configuration=configuration)


#: Priorities are all that ours is told, and the proxies are told them too.
_ROUTES = {
    "GUNICORN_ADMISSION_ROUTES": json.dumps(
        {"/payments": "high", "/updates": "default", "/analytics": "low"}
    )
}

CONTENDERS: dict[str, Contender] = {
    PLAIN: Contender(about="gunicorn, 16 threads", threads=16),
    "gthread64": Contender(about="gunicorn, 64 threads", threads=64),
    "gthread-backlog": Contender(
        about="gunicorn, 16 threads, with the only bounds that it has",
        threads=16,
        more=("--backlog", "64", "--worker-connections", "32"),
    ),
    "semaphore8": Contender(
        about="64 threads and a semaphore of 8 in the application",
        threads=64,
        variables={"BENCHMARK_SEMAPHORE": "8"},
    ),
    "semaphore100": Contender(
        about="128 threads and a semaphore of 100 in the application",
        threads=128,
        variables={"BENCHMARK_SEMAPHORE": "100"},
    ),
    "haproxy": _haproxy("HAProxy: queue by priority for 250 ms", proxies.HAPROXY),
    "haproxy-acl": _haproxy("the same, a length of queue for each priority", proxies.HAPROXY_ACL),
    "nginx": Contender(
        about="nginx: limit_conn 16", threads=24, proxy="nginx", configuration=proxies.NGINX
    ),
    "nginx-tiers": Contender(
        about="nginx: limit_conn 24, 12 and 8 by priority",
        threads=40,
        proxy="nginx",
        configuration=proxies.NGINX_TIERS,
    ),
    OURS: Contender(
        about="gunicorn-admission, 64 threads", threads=64, admission=True, variables=_ROUTES
    ),
    "ours-patient": Contender(
        about="the same, and low priority may wait too",
        threads=64,
        admission=True,
        variables={**_ROUTES, "GUNICORN_ADMISSION_LOW_MAX_WAIT": "500ms"},
    ),
}
