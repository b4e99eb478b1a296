"""A certificate for ``localhost``, made for one run of the tests; nothing secret is kept."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

__all__ = ["Certificate", "make_certificate"]


class Certificate(NamedTuple):
    """The two files that a server needs."""

    certificate: Path
    key: Path

    @property
    def arguments(self) -> tuple[str, ...]:
        """For gunicorn's command line."""
        return "--certfile", str(self.certificate), "--keyfile", str(self.key)

    def context(self) -> ssl.SSLContext:
        """A client's context that trusts this certificate and no other."""
        return ssl.create_default_context(cafile=str(self.certificate))


def make_certificate(directory: Path) -> Certificate:
    """Make a self-signed certificate; needs the ``openssl`` command."""
    made = Certificate(directory / "cert.pem", directory / "key.pem")
    subprocess.run(
        [
            "openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost",
            "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-addext", "subjectAltName=DNS:localhost",
            "-keyout", str(made.key), "-out", str(made.certificate),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return made
