"""The installation's secret, where the environment names none: made once, in the data folder."""

import secrets
from pathlib import Path

from core.private_files import create_once


def secret_key(data: Path) -> str:
    path = data / "secret.key"
    if not path.exists():
        data.mkdir(parents=True, exist_ok=True)
        create_once(path, secrets.token_urlsafe(48))
    return path.read_text().strip()
