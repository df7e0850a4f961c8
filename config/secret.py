"""The installation's secret, where the environment names none: made once, in the data folder.

When it is replaced, those before it are kept beside it, one a line, the newest first.
"""

import os
import secrets
from pathlib import Path

from core.private_files import create_once, write_private

SECRET, OLD = "secret.key", "secret.key.old"


def secret_key(data: Path) -> str:
    path = data / SECRET
    if not path.exists():
        data.mkdir(parents=True, exist_ok=True)
        create_once(path, _new_secret())
    return path.read_text().strip()


def old_secret_keys(data: Path) -> tuple[str, ...]:
    """The newest first."""
    named = os.environ.get("COUNTERSIGN_OLD_SECRET_KEYS", "").replace(",", "\n")
    path = data / OLD
    kept = path.read_text() if path.exists() else ""
    return tuple(dict.fromkeys(f"{named}\n{kept}".split()))


def replace_secret(data: Path) -> None:
    """The present one is kept before another takes its place: one that is lost opens nothing."""
    kept = (secret_key(data), *old_secret_keys(data))
    write_private(data / OLD, "\n".join(dict.fromkeys(kept)) + "\n")
    write_private(data / SECRET, _new_secret())


def _new_secret() -> str:
    return secrets.token_urlsafe(48)
