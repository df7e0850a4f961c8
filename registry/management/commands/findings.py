from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.text import revealed
from inspection import sarif
from inspection.sarif import Inspected
from registry.models import Item, Server, Tool


class Command(BaseCommand):
    help = "Print what was found in what servers say now, or write it as SARIF 2.1.0."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("server", nargs="?", help="of this server alone")
        parser.add_argument("--sarif", action="store_true", help="as SARIF, with advice")

    def handle(self, **options: Any) -> None:
        servers = Server.objects.order_by("slug")
        if options["server"]:
            servers = servers.filter(slug=options["server"])
            if not servers:
                raise CommandError(f"There is no server named {options['server']}.")
        inspected = [one for server in servers for one in _of(server)]
        if options["sarif"]:
            report = orjson.dumps(sarif.report(inspected), option=orjson.OPT_INDENT_2)
            self.stdout.write(report.decode())
            return
        for one in sorted(inspected, key=lambda one: -one.scan.score):
            self._show(one)

    def _show(self, one: Inspected) -> None:
        if not one.scan.risks:
            return
        self.stdout.write(f"{revealed(one.name)}  {one.scan.score} of 100")
        for finding in one.scan.risks:
            quote = revealed(finding.quote).replace("\n", " ")
            self.stdout.write(f"  {finding.level}  {finding.said}, {finding.where}: {quote}")


def _of(server: Server) -> list[Inspected]:
    found: list[Inspected] = []
    for tool in server.tools.exclude(state=Tool.State.RETIRED).select_related("latest"):
        if tool.latest:
            found.append(Inspected(server.slug, tool.exposed_name, "tool", tool.latest.findings))
    for item in server.items.exclude(state=Item.State.RETIRED).select_related("latest"):
        if item.latest:
            name = f"{server.slug} {item.kind} {item.key}"
            found.append(Inspected(server.slug, name, item.kind, item.latest.findings))
    return found
