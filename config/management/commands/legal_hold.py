"""`manage.py legal_hold`: what may not be forgotten until the hold is lifted."""

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit import holds
from audit.forgetting import subjects
from config import host


class Command(BaseCommand):
    help = "Place or lift a legal hold, or list those in force: what it covers is not forgotten."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--everything", action="store_true", help="hold the whole audit log")
        what.add_argument("--person", help="hold what names this user")
        what.add_argument("--agent", help="hold what names this agent")
        what.add_argument("--call", type=UUID, help="hold a call's entries")
        what.add_argument("--lift", type=int, metavar="NUMBER", help="end this hold")
        parser.add_argument("--reason", default="", help="stays in the record: name nobody")
        host.add_data_argument(parser)

    def handle(self, **options: Any) -> None:
        host.enter(options["data"].resolve())
        chosen = [name for name in ("everything", "person", "agent", "call", "lift")
                  if options[name] not in (None, False)]  # fmt: skip
        if not chosen:
            for hold in holds.in_force():
                self.stdout.write(str(hold))
            return
        if not options["reason"]:
            raise CommandError("Give a --reason.")
        if chosen == ["lift"]:
            self._lift(options["lift"], options["reason"])
        else:
            self._place(chosen[0], options)

    def _lift(self, number: int, reason: str) -> None:
        if not holds.lift(number, by=host.actor(), reason=reason):
            raise CommandError(f"No hold {number} is in force.")
        self.stdout.write(f"Hold {number} is lifted.")

    def _place(self, kind: str, options: dict[str, Any]) -> None:
        known = subjects(kind, options[kind]) if kind in ("person", "agent") else []
        if kind in ("person", "agent") and not known:
            raise CommandError(f"The record names no {kind} {options[kind]}.")
        number = holds.place(
            kind, by=host.actor(), reason=options["reason"], call=options["call"], subjects=known
        )
        self.stdout.write(f"Hold {number} is in force.")
