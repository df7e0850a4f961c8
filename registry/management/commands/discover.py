from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core import loop
from registry.discovery import discovery
from registry.models import Server


class Command(BaseCommand):
    help = "Ask servers what they offer: those named, or all that are enabled."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("names", nargs="*")

    def handle(self, *, names: list[str], **options: Any) -> None:
        servers = Server.objects.filter(enabled=True)
        if names:
            servers = Server.objects.kept().filter(slug__in=names)
            if missing := set(names) - set(servers.values_list("slug", flat=True)):
                raise CommandError(f"There is no server named {', '.join(sorted(missing))}.")
        rows = loop.discovery.run(discovery.look_at(list(servers.values_list("pk", flat=True))))
        slugs = dict(servers.values_list("pk", "slug"))
        for row in rows:
            self.stdout.write(f"{slugs[row.server_id]}: {row.summary}")
        if failed := [slugs[row.server_id] for row in rows if not row.succeeded]:
            raise CommandError(f"Not reached: {', '.join(failed)}.")
