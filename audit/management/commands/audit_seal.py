import json
import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from audit.sealing import Inconsistent, seal_all
from audit.signing import CannotSign


class Command(BaseCommand):
    help = "Seal every entry that is not sealed yet (the sealer does so every second by itself)."

    def handle(self, **options: Any) -> None:
        if settings.SEAL_KEY_FILE is None:
            become_sealer("audit_seal")
        try:
            self.stdout.write(f"{seal_all()} entries sealed.")
        except (CannotSign, Inconsistent) as error:
            raise CommandError(str(error)) from error


def become_sealer(*command: str) -> None:
    """Beside `up`: once more, as the sealer's role and with its key. Returns if there is none."""
    path = settings.DATA_DIR / "seal" / "environment.json"
    if path.exists():
        argv = [sys.executable, "-m", "django", *command]
        os.execve(sys.executable, argv, {**os.environ, **json.loads(path.read_text())})  # noqa: S606
