"""`manage.py messages`: finds the sentences of pages and code, and compiles the translations."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.messages import files


class Command(BaseCommand):
    help = "Write locale/zh_Hans anew from templates and code, and compile it. Needs no gettext."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="write nothing; fail unless all is translated"
        )

    def handle(self, **options: Any) -> None:
        catalogue = files.updated()
        missing = files.missing(catalogue)
        unequal = list(files.unequal_placeholders(catalogue))
        for message in missing:
            self.stdout.write(f"not translated: {message.key.msgid!r} ({message.sources[0]})")
        for message in unequal:
            self.stdout.write(f"placeholders differ: {message.key.msgid!r}")
        self.stdout.write(f"{len(catalogue)} messages, {len(missing)} not translated.")
        if not options["check"]:
            files.save(catalogue)
        elif missing or unequal:
            raise CommandError("The Chinese translation is not whole.")
