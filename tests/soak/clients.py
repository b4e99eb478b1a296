"""
Clients of every kind, in a process of their own: ``python -m tests.soak.clients PORT N SEED``.

Each does one thing after another, drawn by chance, until standard input is closed: ordinary
requests on kept connections, bodies, streams, pipelines, and all that clients do wrong.
Printed at the end: how many answers of each status, and what should never have happened.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable

__all__ = ["ALLOWED"]

#: 0 stands for a connection that ended without an answer: aborted, reset, or a dead worker.
ALLOWED = frozenset({0, 200, 400, 408, 503})
_PATIENCE = 20.0
_MANY = 16
_HEAD = "Host: a\r\n"


class Client:
    """One client; counts into what all share."""

    def __init__(self, port: int, chance: random.Random, seen: Counter[str]) -> None:
        self._port = port
        self._chance = chance
        self._seen = seen

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port)

    async def _answer(self, reader: asyncio.StreamReader) -> bool:
        """Read one answer; whether the connection stays open."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            self._seen["0"] += 1
            return False
        lines = head.decode("latin-1").lower().split("\r\n")
        self._seen[lines[0].split(" ")[1]] += 1
        fields = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
        if "content-length" in fields:
            await reader.readexactly(int(fields["content-length"]))
        else:
            await reader.read()
            return False
        return fields.get("connection") != "close"

    async def _exchange(self, *requests: str, body: bytes = b"") -> None:
        reader, writer = await self._open()
        try:
            for request in requests:
                writer.write(request.encode() + body)
                if not await self._answer(reader):
                    return
        finally:
            writer.close()

    async def kept(self) -> None:
        target = self._chance.choice(
            ["/echo/a", "/work/0.01", "/health", "/decision", "/large/5000"]
        )
        await self._exchange(*[f"GET {target} HTTP/1.1\r\n{_HEAD}\r\n"] * 5)

    async def crowded(self) -> None:
        await asyncio.gather(*(self._exchange(_get("/work/0.03")) for _ in range(_MANY)))

    async def closed(self) -> None:
        await self._exchange(_get("/echo/b", "Connection: close\r\n"))

    async def posted(self) -> None:
        size = self._chance.choice([10, 3000, 100_000, 2_000_000])
        length = f"Content-Length: {size}\r\n"
        await self._exchange(f"POST /read/none HTTP/1.1\r\n{_HEAD}{length}\r\n", body=b"x" * size)

    async def chunked(self) -> None:
        head = f"POST /read/none HTTP/1.1\r\n{_HEAD}Transfer-Encoding: chunked\r\n\r\n"
        await self._exchange(head, body=b"400\r\n" + b"x" * 1024 + b"\r\n0\r\n\r\n")

    async def pipelined(self) -> None:
        reader, writer = await self._open()
        try:
            writer.write(_get("/echo/c").encode() * 3)
            for _ in range(3):
                if not await self._answer(reader):
                    return
        finally:
            writer.close()

    async def half(self) -> None:
        """Send half of a request, and wait to be told that it takes too long, or leave."""
        reader, writer = await self._open()
        try:
            writer.write(b"POST /echo/d HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nshort")
            if self._chance.random() < 0.5:
                await self._answer(reader)
        finally:
            writer.close()

    async def silent(self) -> None:
        _, writer = await self._open()
        await asyncio.sleep(self._chance.random())
        writer.close()

    async def garbage(self) -> None:
        await self._exchange(
            self._chance.choice(["\0\1\2\r\n\r\n", "GET\r\n\r\n", "G@T / HTTP/9\r\n\r\n"])
        )

    async def aborted(self) -> None:
        """Ask and leave: before the answer, or in the middle of it, with a reset."""
        reader, writer = await self._open()
        target = self._chance.choice(["/work/0.05", "/large/3000000", "/stream/none?tail=5000"])
        writer.write(_get(target).encode())
        if self._chance.random() < 0.5:
            with contextlib.suppress(OSError):
                await reader.read(100)
        writer.transport.abort()

    async def act(self) -> None:
        """Do one thing."""
        acts: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self.kept, 30), (self.crowded, 4), (self.closed, 10), (self.posted, 8),
            (self.chunked, 5), (self.pipelined, 5), (self.half, 3), (self.silent, 3),
            (self.garbage, 3), (self.aborted, 8),
        ]  # fmt: skip
        functions, weights = zip(*acts, strict=True)
        (chosen,) = self._chance.choices(functions, weights)
        try:
            await asyncio.wait_for(chosen(), _PATIENCE)
        except TimeoutError:
            self._seen[f"hung: {chosen.__name__}"] += 1
        except (OSError, asyncio.IncompleteReadError):
            self._seen["0"] += 1


def _get(target: str, fields: str = "") -> str:
    return f"GET {target} HTTP/1.1\r\n{_HEAD}{fields}\r\n"


async def _main(port: int, clients: int, seed: int) -> None:
    seen: Counter[str] = Counter()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)

    async def live(number: int) -> None:
        client = Client(port, random.Random(seed + number), seen)
        while not ended.is_set():
            await client.act()

    await asyncio.gather(*(live(number) for number in range(clients)))
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(*map(int, sys.argv[1:4])))
