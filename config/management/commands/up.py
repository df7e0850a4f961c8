"""`manage.py up`: a whole installation as the children of one command."""

import asyncio
import os
import sys
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandParser

from config.embedded.service import CannotStart
from config.installation import AlreadyRunning, Installation, Plan
from config.secret_files import read_secret_files

# One keeps a processor busy; beyond that, add hosts.
AGENTS_MAX = 32
ROOT = Path(__file__).resolve().parents[3]


def number_of_endpoints(text: str) -> int:
    number = int(text)
    if not 1 <= number <= AGENTS_MAX:
        raise ArgumentTypeError(f"from 1 to {AGENTS_MAX}")
    return number


class Command(BaseCommand):
    help = (
        "Start console, agents' endpoint, worker, beat and sealer, a database and a broker where "
        "none is given, and `maintain` once an hour."
    )
    # Settings can only be read once the services they name run: this command starts those.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--port", type=int, default=8000, help="the console's port (%(default)s)"
        )
        parser.add_argument(
            "--agent-port", type=int, default=8001, help="the agents' port (%(default)s)"
        )
        parser.add_argument(
            "--host", default="127.0.0.1", help="address to listen on (%(default)s)"
        )
        parser.add_argument(
            "--agents",
            type=number_of_endpoints,
            default=1,
            metavar="N",
            help="processes of the agents' endpoint on its port (%(default)s)",
        )
        parser.add_argument(
            "--data",
            type=Path,
            default=os.environ.get("COUNTERSIGN_DATA") and Path(os.environ["COUNTERSIGN_DATA"]),
            help="the data directory (var; with --demo var-demo)",
        )
        parser.add_argument(
            "--no-examples",
            dest="examples",
            action="store_false",
            help="do not register the example servers",
        )
        parser.add_argument(
            "--demo",
            action="store_true",
            help="run a demo on a database of its own, marked for good and filled with 30 "
            "invented days",
        )
        parser.add_argument(
            "--paused",
            action="store_true",
            help="send nothing until `manage.py resume`",
        )

    def handle(self, **options: Any) -> None:
        plan = Plan(
            host=options["host"],
            port=options["port"],
            agent_port=options["agent_port"],
            data=(options["data"] or ROOT / ("var-demo" if options["demo"] else "var")).resolve(),
            examples=options["examples"] or options["demo"],
            demo=options["demo"],
            paused=options["paused"],
            agents=options["agents"],
        )
        try:
            # Also what only this process reads, and what must not reach the sealer as a path.
            read_secret_files(os.environ)
            asyncio.run(Installation(plan).run())
        except AlreadyRunning as error:
            self.stderr.write(str(error))
            sys.exit(os.EX_TEMPFAIL)
        except (CannotStart, ImproperlyConfigured) as error:
            self.stderr.write(str(error))
            sys.exit(1)
