from typing import Any

from django.core.management.base import BaseCommand

from accounts.roles import ensure_roles


class Command(BaseCommand):
    help = (
        "Make the groups Administrator, Operator, Approver, Auditor and Viewer what they should be."
    )

    def handle(self, **options: Any) -> None:
        changed = ensure_roles()
        self.stdout.write(
            f"Set: {', '.join(changed)}." if changed else "All roles are as they should be."
        )
