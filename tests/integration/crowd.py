"""
A crowd of impatient clients in a process of its own, so that it does not slow the test down.

Each of them opens a connection, asks, reads the answer, and does it again at once. It runs
until its standard input is closed: ``python -m tests.integration.crowd ADDRESS ...``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Address", "Crowd", "crowd"]

_TIMEOUT = 10.0


class Address(NamedTuple):
    """
    Where the crowd goes.

    Attributes:
        path: Of a Unix socket, or empty.
        port: On loopback, or 0.
        certificate: That TLS trusts, or empty for none.
        preamble: Sent first on each connection, as text.
    """

    path: str = ""
    port: int = 0
    certificate: str = ""
    preamble: str = ""


class Crowd:
    """
    Clients that are at it now.

    Attributes:
        statuses: How many answers there were of each status, once it has ended; ``0`` counts
            connections that gave none.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.statuses: Counter[int] = Counter()
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"

    def end(self) -> None:
        """Let everybody finish and count."""
        out, _ = self._process.communicate(timeout=3 * _TIMEOUT)
        self.statuses = Counter({int(code): n for code, n in json.loads(out).items()})


@contextlib.contextmanager
def crowd(address: Address, clients: int, target: str) -> Iterator[Crowd]:
    """Start a crowd that asks for one target; it has ended after the block."""
    line = [sys.executable, "-m", __name__, json.dumps(address), str(clients), target]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True) as process:
        started = Crowd(process)
        try:
            yield started
        finally:
            started.end()


async def _ask(address: Address, context: ssl.SSLContext | None, request: bytes) -> int:
    if address.path:
        opened = asyncio.open_unix_connection(address.path)
    else:
        name = "localhost" if context else None
        opened = asyncio.open_connection(
            "127.0.0.1", address.port, ssl=context, server_hostname=name
        )
    reader, writer = await opened
    try:
        writer.write(request)
        answer = await reader.read()
        return int(answer[9:12] or 0)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _main(address: Address, clients: int, target: str) -> None:
    context = (
        ssl.create_default_context(cafile=address.certificate) if address.certificate else None
    )
    request = f"{address.preamble}GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    statuses: Counter[int] = Counter()
    ended = asyncio.Event()

    async def client() -> None:
        while not ended.is_set():
            status = 0
            with contextlib.suppress(OSError, TimeoutError):
                asked = _ask(address, context, request.encode("latin-1"))
                status = await asyncio.wait_for(asked, _TIMEOUT)
            statuses[status] += 1
            if sum(statuses.values()) == 1:
                print("begun", flush=True)

    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin.fileno(), ended.set)
    await asyncio.gather(*(client() for _ in range(clients)))
    print(json.dumps(statuses), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(Address(*json.loads(sys.argv[1])), int(sys.argv[2]), sys.argv[3]))
