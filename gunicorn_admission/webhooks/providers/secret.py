"""A shared secret or public key, and until when it is accepted."""

from __future__ import annotations

import attrs

from gunicorn_admission.errors import ConfigError

__all__ = ["HIDDEN", "Secret", "bad_secret"]

#: Stands for the value in every message and representation.
HIDDEN = "(hidden)"


def bad_secret(expected: str, hint: str) -> ConfigError:
    """Return the error for a secret that cannot work; it does not show the secret."""
    return ConfigError("secret", HIDDEN, expected, hint)


def _check_value(_: Secret, __: attrs.Attribute[str], value: str) -> None:
    if not isinstance(value, str):
        raise bad_secret("text", "decode it where it is read")
    if not value.strip():
        raise bad_secret(
            "a secret that is not blank", "anyone can sign with a blank secret; copy the sender's"
        )
    if value != value.strip():
        raise bad_secret(
            "a secret without white space around it",
            "a line end came with it from a file or a terminal; strip it where it is read",
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise bad_secret("valid Unicode", "read it as UTF-8") from None


@attrs.frozen(eq=False)
class Secret:
    """
    One secret of a source. During a rotation a source has several, and each is tried.

    Args:
        value: As the sender shows it, with its prefix: ``whsec_...``, a token, a public key in
            PEM or base64, a PayPal webhook id. Never shown.
        not_after: Accepted until then, in seconds since the epoch; ``None`` is without end.
            Give an old secret an hour at least: Shopify signs with it for half an hour after
            it was revoked.

    Raises:
        ConfigError: The value is blank, has white space around it or is not text.

    Thread safety: immutable. Compared by identity, so that no comparison of values leaks
    through its duration.
    """

    value: str = attrs.field(repr=lambda _: HIDDEN, validator=_check_value)
    not_after: float | None = None

    def is_active(self, now: float) -> bool:
        """Whether it is accepted at ``now``, in seconds since the epoch."""
        return self.not_after is None or now <= self.not_after
