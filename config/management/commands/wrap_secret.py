"""`manage.py wrap_secret`: encrypts the installation's secret, where it is kept, with a key of
another system; also again, with another key or version of it, while everything runs."""

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.services import record
from config import host
from config.key_providers import provider
from config.key_providers.key_requests import KeyProviderFailed
from config.secret import wrap_kept


class Command(BaseCommand):
    help = "Encrypt the installation's secret with the key of COUNTERSIGN_KEY_PROVIDER."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        host.add_data_argument(parser)
        parser.add_argument(
            "--print",
            action="store_true",
            help="print it for COUNTERSIGN_SECRET_KEY, and write nothing",
        )

    def handle(self, **options: Any) -> None:
        chosen = provider.chosen()
        if not chosen:
            raise CommandError("COUNTERSIGN_KEY_PROVIDER is not set: name the key to wrap with.")
        try:
            if options["print"]:
                self.stdout.write(provider.wrap(settings.SECRET_KEY, chosen))
                return
            self._wrap_files(options, chosen)
        except KeyProviderFailed as error:
            raise CommandError(str(error)) from error

    def _wrap_files(self, options: dict[str, Any], chosen: str) -> None:
        if os.environ.get("COUNTERSIGN_SECRET_KEY"):
            raise CommandError(
                "This installation's secret is COUNTERSIGN_SECRET_KEY: run this with --print, and "
                "set what it prints there."
            )
        host.enter(options["data"].resolve())
        count = wrap_kept(settings.DATA_DIR)
        record("secret.wrapped", actor=host.actor(), provider=chosen, secrets=count)
        self.stdout.write(f"{count} secrets are encrypted with {chosen}.")
