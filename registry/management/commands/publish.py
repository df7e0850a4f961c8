from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.errors import CountersignError
from core.text import revealed
from registry import services
from registry.models import Server, Tool
from registry.schemas import definitions


class Command(BaseCommand):
    help = "Show the definitions of a server that wait, and publish one, by its digest, or all."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("server")
        parser.add_argument(
            "tool",
            nargs="?",
            help="as its server calls it; or a resource's URI, or a prompt's name",
        )
        parser.add_argument("--digest", help="of the definition that you have read")
        parser.add_argument("--all", action="store_true", help="publish everything that waits")

    def handle(self, **options: Any) -> None:
        server = Server.objects.filter(slug=options["server"]).first()
        if server is None:
            raise CommandError(f"There is no server named {options['server']}.")
        if options["all"]:
            self._all(server)
        elif options["tool"] and options["digest"]:
            self._one(server, options["tool"], options["digest"])
        else:
            self._show(server)

    def _all(self, server: Server) -> None:
        refused = services.publish_all(server, by=None)
        if refused := refused + services.publish_items(server, by=None):
            raise CommandError("\n".join(refused))

    def _one(self, server: Server, name: str, digest: str) -> None:
        tool = server.tools.select_related("server").filter(name=name).first()
        item = server.items.filter(key=name, latest__digest=digest).first()
        try:
            if tool is not None:
                services.publish(tool, digest=digest, by=None)
            elif item is not None:
                services.publish_item(item, digest=digest, by=None)
            else:
                raise CommandError(f"{server} has no tool named {name}, nor anything with it.")
        except CountersignError as error:
            raise CommandError(str(error)) from error

    def _show(self, server: Server) -> None:
        held = server.tools.filter(state__in=[Tool.State.NEW, Tool.State.CHANGED])
        for tool in held.select_related("latest"):
            if tool.latest is None:
                continue
            self.stdout.write(f"{tool.name}  --digest {tool.latest.digest}")
            self.stdout.write(f"  {revealed(tool.latest.body)}")
            for problem in definitions.problems(tool.latest.content):
                self.stdout.write(f"  Cannot be published: {revealed(problem)}")
        for item in server.items.waiting().for_list():
            if item.latest is not None:
                self.stdout.write(
                    f"{item.kind} {revealed(item.key)}  --digest {item.latest.digest}"
                )
                self.stdout.write(f"  {revealed(item.latest.body)}")
