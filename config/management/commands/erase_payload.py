"""`manage.py erase_payload CALL`: what a call asked and got is gone, and every proof holds."""

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from approvals.payload_erasure import CannotErase, erase, find_obstacle
from audit.erasure_ledger import LedgerUnusable
from calls.models import Call
from config import host


class Command(BaseCommand):
    help = "Erase a call's arguments and result, and every copy. Without --yes it only checks."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("call", type=UUID, help="the call's id")
        parser.add_argument("--reason", required=True, help="stays in the record: name nobody")
        parser.add_argument("--yes", action="store_true", help="do it; it cannot be taken back")
        host.add_data_argument(parser)

    def handle(self, **options: Any) -> None:
        host.enter(options["data"].resolve())
        call = Call.objects.for_page().filter(pk=options["call"]).first()
        if call is None:
            raise CommandError("There is no such call.")
        if obstacle := find_obstacle(call):
            raise CommandError(obstacle)
        if not options["yes"]:
            self.stdout.write("Nothing was changed. --yes erases the payload for good.")
            return
        try:
            erase(call, by=host.actor(), reason=options["reason"])
        except (CannotErase, LedgerUnusable, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"The payload of call {call.pk} was erased.")
