from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from audit.management.commands.audit_seal import become_sealer
from audit.sealing import Inconsistent, rotate_key
from audit.signing import CannotSign, keys


class Command(BaseCommand):
    help = "Let another key sign the record from now on; those before go on to prove what they did."

    def handle(self, **options: Any) -> None:
        if settings.SEAL_KEY_FILE is None:
            become_sealer("audit_rotate_key")
        try:
            rotate_key()
        except (CannotSign, Inconsistent) as error:
            raise CommandError(str(error)) from error
        self.stdout.write("From now on signs the last of these. Give all to whoever checks:")
        for key in keys():
            self.stdout.write(str(key))
