from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from core.errors import CountersignError
from registry import services
from registry.management.commands.register_server import given_secrets
from registry.models import Server

NEWEST = "newest"


class Command(BaseCommand):
    help = (
        "Give a server another address or other secrets, take up its command as it stands in "
        "the host's catalogue now, switch it on and off, or say what it may ask of agents and in "
        "which revision of the protocol it is spoken to."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--url")
        parser.add_argument("--command", dest="program")
        secrets = parser.add_mutually_exclusive_group()
        secrets.add_argument(
            "--secrets", action="store_true", help="read them anew, as register_server does"
        )
        secrets.add_argument("--without-secrets", action="store_true", help="drop those it has")
        switch = parser.add_mutually_exclusive_group()
        switch.add_argument("--enable", dest="enabled", action="store_true", default=None)
        switch.add_argument("--disable", dest="enabled", action="store_false", default=None)

        parser.add_argument(
            "--may-ask",
            nargs="*",
            choices=Server.Relay.values,
            help="what it may ask of agents in the middle of a call; none where nothing is named",
        )

        parser.add_argument(
            "--revision",
            choices=[NEWEST, *filter(None, Server.Revision.values)],
            help="of the protocol, in which it is spoken to",
        )

    @transaction.atomic
    def handle(self, **options: Any) -> None:
        server = Server.objects.kept().filter(slug=options["name"]).first()
        if server is None:
            raise CommandError(f"There is no server named {options['name']}.")
        settings = ("enabled", "may_ask", "revision")
        only_set = any(options[name] is not None for name in settings)
        if not only_set or options["url"] or options["program"]:
            self._connect(server, options)
        if options["enabled"] is not None:
            services.set_enabled(server, options["enabled"], by=None)
        if options["may_ask"] is not None:
            services.set_relays(server, options["may_ask"], by=None)
        if options["revision"] is not None:
            chosen = "" if options["revision"] == NEWEST else options["revision"]
            services.set_revision(server, chosen, by=None)
        self.stdout.write(f"{server}: {server.address}{'' if server.enabled else ' (disabled)'}")

    def _connect(self, server: Server, options: dict[str, Any]) -> None:
        kept = server.sealed_headers is not None or server.sealed_credential is not None
        if kept and not (options["secrets"] or options["without_secrets"]):
            raise CommandError(
                "It has secrets, which never move along: give them anew with --secrets, "
                "or say --without-secrets."
            )
        try:
            services.set_connection(
                server,
                url=options["url"] or server.url,
                command=options["program"] or server.command,
                by=None,
                **(given_secrets() if options["secrets"] else {}),
            )
        except CountersignError as error:
            raise CommandError(str(error)) from error
