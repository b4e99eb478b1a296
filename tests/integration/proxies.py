"""
A real nginx or HAProxy in front of a server under test.

Each inherits a socket that listens already, so there is no port to guess and nothing to
wait for: a connection made before it is up waits in the backlog.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.integration.wire import PATIENCE

__all__ = ["haproxy", "nginx"]

_NGINX = """
daemon off;
user root;
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/proxy.log info;
events {{ worker_connections 128; }}
http {{
    access_log off;
    client_max_body_size 0;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    upstream app {{ server {host}:{port}; keepalive 4; }}
    server {{
        listen 127.0.0.1:{listen};
        location / {{
            proxy_pass http://app;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_request_buffering {buffering};
            proxy_next_upstream off;
        }}
    }}
}}
"""

_HAPROXY = """
global
    maxconn 128
defaults
    mode http
    retries 0
    timeout connect 5s
    timeout client 10s
    timeout server 10s
frontend clients
    bind fd@{descriptor}
    default_backend app
backend app
    server app {host}:{port} {options}
"""


@contextlib.contextmanager
def nginx(directory: Path, upstream: tuple[str, int], *, buffering: bool) -> Iterator[int]:
    """
    Run nginx; the port that it serves.

    Args:
        directory: For its files, not used by another proxy.
        upstream: Where gunicorn listens.
        buffering: ``proxy_request_buffering``: whether a body is read before gunicorn sees it.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        conf = directory / "nginx.conf"
        conf.write_text(
            _NGINX.format(
                directory=directory,
                listen=port,
                host=upstream[0],
                port=upstream[1],
                buffering="on" if buffering else "off",
            )
        )
        command = [_program("nginx"), "-c", str(conf), "-e", str(directory / "proxy.log")]
        # How nginx hands its sockets to the next nginx when it is upgraded.
        with _running(directory, command, listener, {"NGINX": f"{listener.fileno()};"}):
            yield port


@contextlib.contextmanager
def haproxy(directory: Path, upstream: tuple[str, int], options: str = "") -> Iterator[int]:
    """
    Run HAProxy; the port that it serves.

    Args:
        directory: For its files, not used by another proxy.
        upstream: Where gunicorn listens.
        options: Of the ``server`` line, such as ``"send-proxy"``.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        conf = directory / "haproxy.conf"
        conf.write_text(
            _HAPROXY.format(
                descriptor=listener.fileno(), host=upstream[0], port=upstream[1], options=options
            )
        )
        with _running(directory, [_program("haproxy"), "-db", "-f", str(conf)], listener, {}):
            yield port


def _program(name: str) -> str:
    """Where it is; Debian keeps both where a user's PATH does not look."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    assert found, f"{name} is not installed"
    return found


@contextlib.contextmanager
def _running(
    directory: Path, command: list[str], listener: socket.socket, variables: dict[str, str]
) -> Iterator[None]:
    output = directory / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            command,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=os.environ | variables,
            pass_fds=[listener.fileno()],
        )
    listener.close()  # so that a proxy that does not start refuses connections
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)
        for log in (output, directory / "proxy.log"):
            if log.exists():
                print(log.read_text())
