from typing import Any

from django.core.management.base import BaseCommand

from audit.sealing import seal_all


class Command(BaseCommand):
    help = "Seal every entry that is not sealed yet (workers do so every second by themselves)."

    def handle(self, **options: Any) -> None:
        self.stdout.write(f"{seal_all()} entries sealed.")
