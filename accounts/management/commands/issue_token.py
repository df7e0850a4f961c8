from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import services
from accounts.models import Agent, User
from core.errors import CountersignError


class Command(BaseCommand):
    help = "Issue a token for an agent and print it once; with --owner, create the agent first."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent")
        parser.add_argument("--owner", help="the owner of the new agent")
        parser.add_argument("--days", type=int, default=30)
        parser.add_argument(
            "--toolset",
            action="append",
            default=[],
            metavar="NAME",
            help="a toolset that it opens, once for each; default: all of the agent's",
        )
        parser.add_argument(
            "--read-only", action="store_true", help="it calls read-only tools alone"
        )

    def handle(
        self, *, agent: str, owner: str | None, days: int, toolset: list[str], **options: Any
    ) -> None:
        try:
            token = services.issue_token(
                self._agent(agent, owner),
                by=None,
                days=days,
                toolsets=toolset,
                reads_only=options["read_only"],
            )
        except CountersignError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(token)

    def _agent(self, name: str, owner: str | None) -> Agent:
        known = Agent.objects.filter(name=name).first()
        if known:
            return known
        person = User.objects.filter(username=owner).first() if owner else None
        if person is None:
            raise CommandError(
                f"There is no agent {name}: name an existing person as --owner to make it."
            )
        return services.create_agent(name, owner=person, by=None)
