from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import services
from accounts.models import MAX_HOLD_S, Agent
from core.errors import CountersignError


class Command(BaseCommand):
    help = (
        "Say after how many seconds an agent is told that its call is pending approval, whether its"
        " tokens must be bound to a key, and for which team of its owner it acts."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent")
        parser.add_argument(
            "--hold",
            type=int,
            metavar="SECONDS",
            help=f"1 to {MAX_HOLD_S}, before its client gives up; 0: as its toolset says",
        )
        parser.add_argument(
            "--dpop",
            choices=("required", "optional"),
            help="whether only access tokens bound to the client's key open something",
        )

        parser.add_argument(
            "--team",
            help="whose account its calls carry at servers that are called with a team's; "
            "empty: the only one of its owner",
        )

    def handle(
        self,
        *,
        agent: str,
        hold: int | None,
        dpop: str | None,
        team: str | None,
        **options: Any,
    ) -> None:
        known = Agent.objects.filter(name=agent).first()
        if known is None:
            raise CommandError(f"There is no agent named {agent}.")
        if hold is None and dpop is None and team is None:
            raise CommandError("Give --hold, --dpop or --team.")
        if hold is not None:
            self._set_hold(known, hold)
        if dpop is not None:
            services.set_requires_dpop(known, dpop == "required", by=None)
            self.stdout.write(f"Proof of a key with requests of {agent}: {dpop}")

        if team is not None:
            self._set_team(known, team)

    def _set_team(self, known: Agent, team: str) -> None:
        try:
            services.set_team(known, services.team_named(team) if team else None, by=None)
        except CountersignError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{known} acts for: {team or 'the only team of its owner'}")

    def _set_hold(self, known: Agent, hold: int) -> None:
        try:
            services.set_hold(known, hold or None, by=None)
        except CountersignError as error:
            raise CommandError(str(error)) from error
        said = f"{hold} s" if hold else "as its toolset says"
        self.stdout.write(f"Requests of {known} that wait for people are answered after: {said}")
