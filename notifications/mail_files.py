"""Mail in files, where no server sends it: for this user alone, since its links reset passwords."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.mail.backends.filebased import EmailBackend


class PrivateFileBackend(EmailBackend):
    """Django's own, in a directory that nobody else may enter."""

    def __init__(self, *, file_path: str | None = None, **options: Any) -> None:
        path = Path(file_path or settings.EMAIL_FILE_PATH)
        path.mkdir(parents=True, exist_ok=True)
        # One of an earlier version was open to everybody.
        path.chmod(0o700)
        super().__init__(file_path=str(path), **options)
