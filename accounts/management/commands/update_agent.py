from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import services
from accounts.models import MAX_HOLD_S, Agent
from core.errors import CountersignError


class Command(BaseCommand):
    help = "Say after how many seconds an agent is told that its call is pending approval."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent")
        parser.add_argument(
            "--hold",
            type=int,
            required=True,
            metavar="SECONDS",
            help=f"1 to {MAX_HOLD_S}, before its client gives up; 0: as its toolset says",
        )

    def handle(self, *, agent: str, hold: int, **options: Any) -> None:
        known = Agent.objects.filter(name=agent).first()
        if known is None:
            raise CommandError(f"There is no agent named {agent}.")
        try:
            services.set_hold(known, hold or None, by=None)
        except CountersignError as error:
            raise CommandError(str(error)) from error
        said = f"{hold} s" if hold else "as its toolset says"
        self.stdout.write(f"Requests of {agent} that wait for people are answered after: {said}")
