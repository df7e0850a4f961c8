"""`manage.py rotate_secret`: another secret of the installation."""

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
        steps = parser.add_mutually_exclusive_group()
        steps.add_argument(
            "--announce",
            action="store_true",
            help="while processes run: have those that start from now on read with the next secret",
        )
        steps.add_argument(
            "--again",
            action="store_true",
            help="seal with the present secret what an old one sealed since the rotation",
        )

    def handle(self, **options: Any) -> None:
        host.enter(options["data"].resolve())
        given = bool(os.environ.get("COUNTERSIGN_SECRET_KEY"))
        try:
            if options["announce"]:
                self._announce(given)
            elif options["again"]:
                self._reseal_again()
            else:
                self._rotate(given)
        except RotationRefused as error:
            raise CommandError(str(error)) from error

    def _announce(self, given: bool) -> None:
        secret_rotation.announce(given=given, by=host.actor())
        self.stdout.write(
            "Processes that start from now on read what the next secret seals. Restart all of them "
            "(`python3 manage.py restart`), and then run rotate_secret without options."
        )

    def _rotate(self, given: bool) -> None:
        if unaware := secret_rotation.unaware_sessions():
            raise CommandError(
                "Countersign runs on this database, and processes know the present secret alone "
                f"({len(unaware)} sessions): stop it, and rotate then; or run rotate_secret "
                "--announce, restart every process, and rotate then."
            )
        if secret_rotation.begin(given=given):
            # Into a process that knows the new one.
            os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606 ourselves
        self._reseal()
        if host.other_sessions():
            self.stdout.write(
                "Processes still seal with the old secret: restart all of them, and then run "
                "rotate_secret --again."
            )

    def _reseal_again(self) -> None:
        done = secret_rotation.reseal_again(by=host.actor())
        self.stdout.write(f"{done.values} values are sealed with the present secret.")
        self._name_unopened(done.unopened)

    def _reseal(self) -> None:
        done = secret_rotation.reseal(by=host.actor())
        self.stdout.write(f"{done.values} values are sealed with the new secret.")
        self._name_unopened(done.unopened)
        self.stdout.write(
            f"Everybody signs in again. {done.tokens} tokens of agents are recognised by the old "
            f"secret, in {OLD} or COUNTERSIGN_OLD_SECRET_KEYS: remove it once they are rotated."
        )

    def _name_unopened(self, places: list[str]) -> None:
        for place in places:
            self.stderr.write(f"No secret opens what is at {place}: enter it again.")
