"""`manage.py add_examples`: the example servers, in an installation that began without them."""

from typing import Any

from django.core.management.base import BaseCommand

from accounts.services import first_administrator
from config.first_run import TOOLSET, add_examples
from registry.models import Toolset
from registry.services import create_toolset


class Command(BaseCommand):
    help = "Register the example servers with their rules, and add them to a toolset."

    def handle(self, **options: Any) -> None:
        found = Toolset.objects.filter(slug=TOOLSET).first()
        toolset = found or create_toolset(TOOLSET, by=None)
        add_examples(toolset, first_administrator())
        self.stdout.write(f"The example servers are in the toolset {toolset.slug}.")
