"""`manage.py audit_forget`: names and words are gone from the record, and every proof holds."""

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import Agent, User
from audit import forgetting, holds
from audit.forgetting import Forgettable, subjects
from config import host


class Command(BaseCommand):
    help = "Forget a name, or the words of an entry or a call. Without --yes it only shows them."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--person", help="a user name, with whatever mentions it")
        what.add_argument("--agent", help="an agent's name, with whatever mentions it")
        what.add_argument("--entry", type=int, help="its reason and its details")
        what.add_argument("--call", type=UUID, help="what was written about it, and nowhere else")
        parser.add_argument(
            "--only", choices=("reason", "details"), help="of an entry: one of the two"
        )
        parser.add_argument("--reason", required=True, help="stays in the record: name nobody")
        parser.add_argument("--yes", action="store_true", help="do it; it cannot be taken back")
        host.add_data_argument(parser)

    def handle(self, **options: Any) -> None:
        host.enter(options["data"].resolve())
        what = self._forgettable(options)
        if not what.names and not what.entries:
            raise CommandError("The record says nothing of it" + self._stay(what))
        if not options["yes"]:
            for text in what.texts():
                self.stdout.write(text)
            self.stdout.write(f"{self._counted(what)} would be forgotten{self._stay(what)}")
            self.stdout.write("Nothing was changed. --yes forgets it for good.")
            return
        try:
            holds.check(what.names, what.entries)
        except holds.OnHold as error:
            raise CommandError(str(error)) from error
        counted = self._counted(what)
        forgetting.forget(what, by=host.actor(), reason=options["reason"])
        self.stdout.write(f"{counted} forgotten{self._stay(what)}")

    def _forgettable(self, options: dict[str, Any]) -> Forgettable:
        # Whoever goes on would be named again, and the agents' path remembers numbers of names.
        if name := options["person"]:
            if User.objects.filter(pk__in=subjects("person", name), is_active=True).exists():
                raise CommandError(f"{name} still signs in: disable the account first.")
            return forgetting.of_subject("person", name)
        if name := options["agent"]:
            if Agent.objects.filter(pk__in=subjects("agent", name), enabled=True).exists():
                raise CommandError(f"{name} still calls: disable the agent first.")
            return forgetting.of_subject("agent", name)
        if call := options["call"]:
            return forgetting.of_call(call)
        only = options["only"]
        return forgetting.of_entry(
            options["entry"], reason=only != "details", details=only != "reason"
        )

    def _counted(self, what: Forgettable) -> str:
        return ", ".join(f"{count} {kind}" for kind, count in what.kinds.items())

    def _stay(self, what: Forgettable) -> str:
        if not what.stay:
            return "."
        return f"; {what.stay} stay: entries of the first format are sealed with their words."
