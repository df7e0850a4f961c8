from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.text import revealed
from inspection import sarif
from inspection.sarif import Inspected
from registry.discovery.external_scanner import (
    NOT_SCANNED,
    TOOL,
    ExternalScan,
    ScannedDefinition,
    scan_all,
)
from registry.models import Item, Server, Tool
from registry.models.versioned import Version


class Command(BaseCommand):
    help = "Print what was found in what servers say now, or write it as SARIF 2.1.0."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("server", nargs="?", help="of this server alone")
        parser.add_argument("--sarif", action="store_true", help="as SARIF, with advice")
        parser.add_argument(
            "--external",
            action="store_true",
            help="also start COUNTERSIGN_SCANNER for all of them; nothing of it is stored",
        )

    def handle(self, **options: Any) -> None:
        servers = Server.objects.order_by("slug")
        if options["server"]:
            servers = servers.filter(slug=options["server"])
            if not servers:
                raise CommandError(f"There is no server named {options['server']}.")
        if options["external"] and not settings.SCANNER:
            raise CommandError("COUNTERSIGN_SCANNER names no command.")
        inspected = [one for server in servers for one in self._of(server, options["external"])]
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

    def _of(self, server: Server, external: bool) -> Iterator[Inspected]:
        listed = list(_list_definitions(server))
        found = scan_all(server, [one.scanned for one in listed]) if external else NOT_SCANNED
        for said in found.said:
            self.stderr.write(f"{server.slug}: {said}")
        for one in listed:
            yield one.inspected(server, found)


class ListedDefinition(NamedTuple):
    """A current definition. `kind` and `key`: as the external scanner gets them."""

    name: str
    kind: str
    key: str
    version: Version

    @property
    def scanned(self) -> ScannedDefinition:
        return ScannedDefinition(self.kind, self.key, self.version.content)

    def inspected(self, server: Server, external: ExternalScan) -> Inspected:
        scan = self.version.findings
        new = [one for one in external.of(self.kind, self.key) if one not in scan.findings]
        return Inspected(server.slug, self.name, self.kind, scan.with_others(new))


def _list_definitions(server: Server) -> Iterator[ListedDefinition]:
    for tool in server.tools.exclude(state=Tool.State.RETIRED).select_related("latest"):
        if tool.latest:
            yield ListedDefinition(tool.exposed_name, TOOL, tool.name, tool.latest)
    for item in server.items.exclude(state=Item.State.RETIRED).select_related("latest"):
        if item.latest:
            name = f"{server.slug} {item.kind} {item.key}"
            yield ListedDefinition(name, item.kind, item.key, item.latest)
