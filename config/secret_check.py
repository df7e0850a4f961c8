"""Are secret and signing key those that this database was made with?

Another secret opens no credential and knows no token; another key signs what nobody can verify.
Both would look like a running installation all the same.
"""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from config.secret import open_kept
from core.secrets import fingerprint_of

NEWEST = "SELECT fingerprint FROM audit_secret ORDER BY id DESC LIMIT 1"
SIGNER = "SELECT public FROM audit_signer WHERE NOT from_secret ORDER BY id DESC LIMIT 1"


def check_signing_key(url: str, path: Path) -> str:
    """The same of the key that signs the record."""
    row = _row(url, "audit_signer", SIGNER)
    # A rotation that broke off is finished by the sealer.
    files = [path, path.with_name(f"{path.name}.next")]
    if row is None or bytes(row[0]) in [_public(file) for file in files if file.exists()]:
        return ""
    return (
        f"{path} is not the key that signs the record in this database: put the right one back "
        "(it is in every backup as seal/key), or, if it is lost, let another sign from now on: "
        "python3 manage.py audit_rotate_key."
    )


def _public(path: Path) -> bytes:
    try:
        private = Ed25519PrivateKey.from_private_bytes(b64decode(path.read_text().strip()))
    except ValueError:
        return b""
    return private.public_key().public_bytes_raw()


def _row(url: str, table: str, query: str) -> tuple[Any, ...] | None:
    """None also where the database does not say: it is new or older, or does not answer."""
    try:
        with psycopg.connect(url, connect_timeout=10) as link:
            # Asked first: of a table that is not there the server's log says ERROR.
            found = link.execute("SELECT to_regclass(%s) IS NOT NULL", [table]).fetchone()
            return link.execute(query.encode()).fetchone() if found and found[0] else None
    except psycopg.OperationalError:
        return None


def check_secret(
    url: str, secret: str, old: Iterable[str] = (), *, where: str = "COUNTERSIGN_SECRET_KEY"
) -> str:
    """The problem with the secret, as a sentence; "" if there is none, or if the database cannot
    say."""
    row = _row(url, "audit_secret", NEWEST)
    own = fingerprint_of(secret) if secret else "missing"
    if row is None or row[0] == own:
        return ""
    if row[0] in map(fingerprint_of, old):
        return (
            f"The secret in {where} takes the place of the one with the fingerprint {row[0]}, and "
            "this database is still sealed with that: python3 manage.py rotate_secret"
        )
    return (
        f"This database belongs to the secret with the fingerprint {row[0]}, and {where} is "
        f"another ({own}): nothing that is sealed could be opened, and no token would be known. "
        "Put the right one back: it is in every backup as secret.key, or wherever you keep "
        "COUNTERSIGN_SECRET_KEY."
    )


def secret_of(data: Path) -> tuple[str, str]:
    """The secret that processes on this data directory will use, and where it is. Raises
    ImproperlyConfigured where its key provider does not open it."""
    if given := os.environ.get("COUNTERSIGN_SECRET_KEY"):
        return open_kept(given), "COUNTERSIGN_SECRET_KEY"
    path = data / "secret.key"
    return (open_kept(path.read_text().strip()) if path.exists() else ""), str(path)
