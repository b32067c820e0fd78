"""The secret of a challenge: it determines the noise, and the manifest and the scores are sealed with it."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Any

from spdebench.errors import UserError
from spdebench.files import read_bytes
from spdebench.noise.keyed import derived
from spdebench.spec import canonical_json

LEAST, MOST = 32, 4096
"""Bytes of a secret."""
LEAST_DIFFERENT = 8
"""Different bytes in a secret: 64 random hexadecimal digits have fewer once in 10^19 times."""


def read_secret(path: str | Path) -> bytes:
    """The content of a secret's file, without white space at its ends."""
    try:
        secret = read_bytes(Path(path), MOST).strip()
    except FileNotFoundError:
        raise UserError(f"no such file: {path}; make a secret with: openssl rand -hex 32 > {path}") from None
    except OSError as error:
        raise UserError(f"cannot read the secret in {path} ({error.strerror or error})") from None
    check_secret(secret, f"the secret in {path}")
    return secret


def check_secret(secret: bytes, what: str) -> None:
    """Refuse a secret that can be guessed: its published SHA-256 would tell whether a guess is right."""
    different = len(set(secret))
    if len(secret) < LEAST or different < LEAST_DIFFERENT:
        raise UserError(
            f"{what} has {len(secret)} bytes, {different} of them different; at least {LEAST} and {LEAST_DIFFERENT} "
            f"are needed, or it could be guessed; draw one with: openssl rand -hex 32"
        )


def commitment(secret: bytes) -> str:
    """SHA-256 of the secret, which is published: it commits the owner to the secret without revealing it."""
    return hashlib.sha256(secret).hexdigest()


def seal(secret: bytes, purpose: str, value: Any) -> str:
    """HMAC-SHA256 of a JSON value: with the secret one can check whether the value was changed."""
    return derived(secret, "spdebench seal 1", purpose, canonical_json(value)).hex()


def is_sealed(secret: bytes, purpose: str, value: Any, found: str) -> bool:
    """Whether ``found`` is the seal of the value."""
    return hmac.compare_digest(seal(secret, purpose, value).encode(), found.encode())
