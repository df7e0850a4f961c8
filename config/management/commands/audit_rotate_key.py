"""`manage.py audit_rotate_key`: another key signs the record, also where the old one is lost and
nothing runs."""

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.management.commands.audit_seal import become_sealer
from audit.sealing import Inconsistent, rotate_key
from audit.signing import CannotSign, keys
from config import host


class Command(BaseCommand):
    help = "Let another key sign the record from now on; those before go on to prove what they did."

    def add_arguments(self, parser: CommandParser) -> None:
        host.add_data_argument(parser)

    def handle(self, **options: Any) -> None:
        # Named in the container of the sealer, whose role may do this too.
        if settings.SEAL_KEY_FILE is None:
            if os.environ.get("DATABASE_URL"):
                become_sealer("audit_rotate_key")
            host.enter(options["data"].resolve())
        try:
            rotate_key()
        except (CannotSign, Inconsistent) as error:
            raise CommandError(str(error)) from error
        self.stdout.write("From now on signs the last of these. Give all to whoever checks:")
        for key in keys():
            self.stdout.write(str(key))
