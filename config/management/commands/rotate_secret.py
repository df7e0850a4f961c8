"""`manage.py rotate_secret`: another secret of the installation, while nothing runs."""

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config import host, secret_rotation
from config.secret import OLD
from config.secret_rotation import RotationRefused


class Command(BaseCommand):
    help = "Replace the installation's secret, and seal with it what the old one sealed."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        host.add_data_argument(parser)

    def handle(self, **options: Any) -> None:
        host.enter(options["data"].resolve())
        if host.other_sessions():
            raise CommandError(
                "Countersign runs on this database, and its processes know the present secret: "
                "stop it, and rotate then."
            )
        try:
            replaced = secret_rotation.begin(given=bool(os.environ.get("COUNTERSIGN_SECRET_KEY")))
        except RotationRefused as error:
            raise CommandError(str(error)) from error
        if replaced:
            # Into a process that knows the new one.
            os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606 ourselves
        self._reseal()

    def _reseal(self) -> None:
        done = secret_rotation.reseal(by=host.actor())
        self.stdout.write(f"{done.values} values are sealed with the new secret.")
        for place in done.unopened:
            self.stderr.write(f"No secret opens what is at {place}: enter it again.")
        self.stdout.write(
            f"Everybody signs in again. {done.tokens} tokens of agents are recognised by the old "
            f"secret, in {OLD} or COUNTERSIGN_OLD_SECRET_KEYS: remove it once they are rotated."
        )
