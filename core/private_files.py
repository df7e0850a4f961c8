"""Files with a secret in them."""

import os
from pathlib import Path


def create_once(path: Path, text: str) -> None:
    """For this user alone. Of processes that start together one writes it, and nobody ever reads
    half of it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(text)
    try:
        # Written beside it and linked into place.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
