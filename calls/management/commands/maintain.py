from typing import Any

from django.core.management.base import BaseCommand, CommandError

from audit.thinning import may_thin, thin
from calls.content import received_results
from calls.content.large_results import expire, may_expire
from core import months


class Command(BaseCommand):
    help = (
        "Remove what is past its time (large results, most checkpoints) and make the next months' "
        "partitions. Run from time to time, with the maintenance role's way to the database as "
        "DATABASE_URL: `up` does so by itself."
    )
    # It may read nothing that they look at.
    requires_system_checks: list[str] = []

    def handle(self, **options: Any) -> None:
        if not may_expire():
            raise CommandError("This database role may not do it: give the maintenance role's URL.")
        results = 0
        while removed := expire():
            results += len(removed)
        if results:
            self.stdout.write(f"Removed {results} large results that were past their time.")
        received = 0
        while removed_now := received_results.expire():
            received += removed_now
        if received:
            self.stdout.write(f"Removed {received} results as received, past their time.")
        if may_thin() and (checkpoints := thin()):
            self.stdout.write(f"Removed {checkpoints} checkpoints for which later ones stand.")
        try:
            made = months.make()
        except months.TableHeld as error:
            raise CommandError(str(error)) from error
        if made:
            self.stdout.write(f"Made partitions: {', '.join(made)}.")
