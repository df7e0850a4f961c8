from typing import Any

from django.core.management.base import BaseCommand

from audit.sealing import public_key


class Command(BaseCommand):
    help = "Print the key that signs checkpoints: give it to whoever is to check the record."
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        self.stdout.write(str(public_key()))
