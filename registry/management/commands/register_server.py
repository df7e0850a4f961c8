import sys
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import User
from core.errors import CountersignError
from registry import services


class Command(BaseCommand):
    help = "Register an MCP server, by its URL or by a name in the host's catalogue of commands."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        address = parser.add_mutually_exclusive_group(required=True)
        address.add_argument("--url", default="")
        address.add_argument("--command", default="", dest="program")
        parser.add_argument("--owner", required=True, help="the owner of the server")
        parser.add_argument("--title", default="")
        parser.add_argument("--publish", action="store_true", help="publish on first discovery")
        parser.add_argument(
            "--secrets",
            action="store_true",
            help='read {"credential": "…", "headers": {"…": "…"}} from standard input: '
            "what stands on a command line can be read by others",
        )

    def handle(self, **options: Any) -> None:
        owner = User.objects.filter(username=options["owner"]).first()
        if owner is None:
            raise CommandError(f"There is no person named {options['owner']}.")
        try:
            server = services.register(
                options["name"],
                transport="http" if options["url"] else "stdio",
                url=options["url"],
                command=options["program"],
                title=options["title"],
                publish=options["publish"],
                owner=owner,
                by=None,
                **(given_secrets() if options["secrets"] else {}),
            )
        except CountersignError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Registered {server}: {server.address}")


def given_secrets() -> dict[str, Any]:
    try:
        given = orjson.loads(sys.stdin.buffer.read())
        return {
            "credential": given.pop("credential", ""),
            "headers": dict(given.pop("headers", {})),
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise CommandError(
            "Standard input is not a JSON object of credential and headers."
        ) from error
