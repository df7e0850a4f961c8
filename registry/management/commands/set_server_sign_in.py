from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.errors import CountersignError
from registry.credentials import clients
from registry.forms.sign_in import ServerSignInForm
from registry.models import Server

# The shared credential of the server's page.
NONE = "shared"


class Command(BaseCommand):
    help = (
        "Choose whose credential the calls of a server carry, and how it is got. Another choice "
        "than before deletes every credential that there is for the server."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("mode", choices=[NONE, *filter(None, Server.SignIn.values)])
        parser.add_argument("--client-id", default="", help="of OAuth; else it registers itself")
        parser.add_argument(
            "--client-secret",
            action="store_true",
            help="read it from standard input: what stands on a command line can be read by others",
        )
        parser.add_argument("--scope", action="append", default=[], help="may be repeated")
        parser.add_argument("--header", default="", help="that keys go into")

    def handle(self, **options: Any) -> None:
        server = Server.objects.kept().filter(slug=options["name"]).first()
        if server is None:
            raise CommandError(f"There is no server named {options['name']}.")
        try:
            changed = clients.set_sign_in(server, **_form(options).wanted, by=None, if_changed=True)
        except CountersignError as error:
            raise CommandError(str(error)) from error
        said = "is set" if changed else "was set so already"
        self.stdout.write(f"The sign-in of {server} {said}: {options['mode']}.")


def _form(options: dict[str, Any]) -> ServerSignInForm:
    """Raises CommandError for what the page would not take."""
    secret = sys.stdin.readline().rstrip("\n") if options["client_secret"] else ""
    mode = "" if options["mode"] == NONE else options["mode"]
    more = {"client_secret": secret, "scopes": " ".join(options["scope"])}
    form = ServerSignInForm({**options, "sign_in": mode, **more})
    if not form.is_valid():
        raise CommandError(" ".join(str(one) for found in form.errors.values() for one in found))
    return form
