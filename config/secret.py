"""The installation's secret: from the environment, else made once and kept in the data folder."""

import os
import secrets
from pathlib import Path


def secret_key(data: Path) -> str:
    given = os.environ.get("COUNTERSIGN_SECRET_KEY")
    if given:
        return given
    path = data / "secret.key"
    if not path.exists():
        _create(path)
    return path.read_text().strip()


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written beside and linked into place: two processes that start together keep one key,
    # and nobody ever reads half of one.
    draft = path.with_name(f".secret.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(48))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
