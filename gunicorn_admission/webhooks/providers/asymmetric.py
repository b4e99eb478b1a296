"""
Signatures with public keys: ECDSA, RSA and Ed25519, by the ``cryptography`` package.

The package is the extra ``asym`` and is loaded when a key is first read, so that the HMAC
senders need nothing beyond the standard library. A public key is no secret: nothing here has
to take constant time.
"""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from typing import TYPE_CHECKING

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.providers.secret import bad_secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.x509 import Certificate

__all__ = [
    "decode_base64",
    "ecdsa_key",
    "ecdsa_matches",
    "ed25519_key",
    "ed25519_matches",
    "read_certificate",
    "require_cryptography",
    "rsa_matches",
]


def require_cryptography(sender: str) -> None:
    """
    Check that the extra is installed.

    Raises:
        ConfigError: It is not; one sentence with the command that installs it.
    """
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise ConfigError(
            "provider",
            sender,
            "the package cryptography, which its signatures need",
            "pip install 'gunicorn-admission[asym]'",
        ) from None


def decode_base64(text: bytes | str) -> bytes | None:
    """
    Return the bytes behind base64, or ``None``.

    Only the one spelling that an encoder makes is taken: else a signature could be changed
    without becoming wrong.
    """
    try:
        given = text.encode("ascii") if isinstance(text, str) else text
        value = base64.b64decode(given, validate=True)
    except (ValueError, binascii.Error):
        return None
    return value if base64.b64encode(value) == given else None


@lru_cache(maxsize=64)
def ecdsa_key(text: str, sender: str) -> EllipticCurvePublicKey:
    """
    Return an ECDSA P-256 public key from PEM, or from the base64 inside of it.

    Raises:
        ConfigError: It is no such key, or the extra is not installed.
    """
    require_cryptography(sender)
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    inner = "".join(line for line in text.splitlines() if not line.startswith("-----"))
    try:
        key = serialization.load_der_public_key(base64.b64decode(inner, validate=True))
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise bad_secret(
            "an ECDSA P-256 public key in PEM or base64", f"copy the verification key of {sender}"
        )
    return key


def ecdsa_matches(key: EllipticCurvePublicKey, signature: bytes, message: bytes) -> bool:
    """Whether an ECDSA signature (DER) with SHA-256 over a message is good."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        key.verify(signature, message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


@lru_cache(maxsize=64)
def ed25519_key(raw: bytes, sender: str) -> Ed25519PublicKey:
    """
    Return an Ed25519 public key from its 32 bytes.

    Raises:
        ConfigError: It is no such key, or the extra is not installed.
    """
    require_cryptography(sender)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        return Ed25519PublicKey.from_public_bytes(raw)
    except ValueError:
        raise bad_secret(
            "an Ed25519 public key of 32 bytes", f"copy the public key of {sender} again"
        ) from None


def ed25519_matches(key: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    """Whether an Ed25519 signature over a message is good."""
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def read_certificate(pem: bytes) -> Certificate | None:
    """Return the first X.509 certificate in PEM, or ``None``."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError:
        return None


def rsa_matches(certificate: Certificate, signature: bytes, message: bytes) -> bool:
    """Whether an RSA signature (PKCS #1 v1.5) with SHA-256 over a message is good."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    key = certificate.public_key()
    if not isinstance(key, rsa.RSAPublicKey):
        return False
    try:
        key.verify(signature, message, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True
