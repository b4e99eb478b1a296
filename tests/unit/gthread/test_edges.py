"""Bytes in a Unix socket are waited for without waking for each of them again and again."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Iterator

import pytest

from gunicorn_admission.gthread.edges import Edges


class World:
    """A poller, what waits in it, and a pair of sockets."""

    def __init__(self) -> None:
        self.poller = selectors.DefaultSelector()
        self.edges = Edges(self.poller)
        self.client, self.server = socket.socketpair()
        self.ready: list[socket.socket] = []

    def turn(self) -> bool:
        """One turn of a main loop that does not block; whether anything woke it."""
        events = self.poller.select(0)
        for key, _ in events:
            key.data(key.fileobj)
        return bool(events)

    def watch(self, needed: int) -> None:
        def ready(sock: socket.socket) -> None:
            assert self.edges.forget(sock)
            self.ready.append(sock)

        self.edges.watch(self.server, needed, ready)


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.client.close()
    made.server.close()
    made.poller.close()
    made.edges._epoll.close()


def test_too_few_bytes_wake_once_a_change_and_call_nobody(world: World) -> None:
    world.client.send(b"abc")
    world.watch(10)
    assert world.turn()  # what lies there already
    assert not world.turn()
    world.client.send(b"d")
    assert world.turn()
    assert not world.turn()
    assert world.ready == []


def test_enough_bytes_call_once(world: World) -> None:
    world.watch(4)
    world.client.send(b"ab")
    world.turn()
    world.client.send(b"cd")
    world.turn()
    assert world.ready == [world.server]
    world.client.send(b"ef")
    assert not world.turn()
    assert not world.edges.forget(world.server)


def test_bytes_that_came_before_count(world: World) -> None:
    world.client.send(b"abcd")
    world.watch(4)
    world.turn()
    assert world.ready == [world.server]


@pytest.mark.parametrize("end", ["close", "half"])
def test_a_client_that_ends_is_not_waited_for(world: World, end: str) -> None:
    world.client.send(b"ab")
    world.watch(4)
    world.turn()
    if end == "close":
        world.client.close()
    else:
        world.client.shutdown(socket.SHUT_WR)
    world.turn()
    assert world.ready == [world.server]


def test_a_socket_may_be_waited_for_again(world: World) -> None:
    world.client.send(b"ab")
    world.watch(3)
    world.turn()
    assert world.edges.forget(world.server)
    world.watch(2)
    world.turn()
    assert world.ready == [world.server]
