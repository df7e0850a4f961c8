from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from accounts.actors import COMMAND_LINE
from approvals.decision_keys import KeyRefused, new_key, withdraw
from approvals.models import DecisionKey


class Command(BaseCommand):
    help = (
        "Make a new key that signs decisions; earlier ones still verify what they signed, unless "
        "they are withdrawn."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--list", action="store_true", help="list the keys instead")
        parser.add_argument(
            "--withdraw", metavar="KID", help="withdraw this key instead: nothing it signed holds"
        )
        parser.add_argument("--reason", default="", help="why it is withdrawn; verifiers read it")

    def handle(self, **options: Any) -> None:
        if options["list"]:
            self._list()
        elif options["withdraw"]:
            signing = self._withdraw(options["withdraw"], options["reason"])
            self.stdout.write(f"The key is withdrawn. The key {signing} signs from now on.")
        else:
            self.stdout.write(f"The key {new_key()} signs from now on.")

    def _list(self) -> None:
        for key in DecisionKey.objects.all():
            ended = f", withdrawn {key.withdrawn_at:%Y-%m-%d}" if key.withdrawn_at else ""
            self.stdout.write(f"{key}  made {key.created_at:%Y-%m-%d}{ended}")

    def _withdraw(self, kid: str, reason: str) -> DecisionKey:
        try:
            found = DecisionKey.objects.get(pk=kid)
            return withdraw(found, reason=reason, by=COMMAND_LINE)
        except (DecisionKey.DoesNotExist, ValidationError) as error:
            raise CommandError(f"There is no key {kid}.") from error
        except KeyRefused as error:
            raise CommandError(str(error)) from error
