"""`manage.py restart`: asks a running `up` to replace its processes one after the other."""

import fcntl
import os
import sys
import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config import rolling_restart

ROOT = Path(__file__).resolve().parents[3]


class Command(BaseCommand):
    help = "Restart the processes of a running `up` one after the other; calls go on meanwhile."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--data",
            type=Path,
            default=Path(os.environ.get("COUNTERSIGN_DATA") or ROOT / "var"),
            help="the data directory of `up` (%(default)s)",
        )
        parser.add_argument(
            "--within", type=float, default=300, help="seconds to wait for it (%(default)g)"
        )

    def handle(self, **options: Any) -> None:
        data: Path = options["data"].resolve()
        pid, before = running_pid(data), rolling_restart.read(data)["times"]
        os.kill(pid, rolling_restart.RENEW)
        until = time.monotonic() + options["within"]
        while (note := rolling_restart.read(data))["times"] == before:
            if time.monotonic() > until:
                raise CommandError("It takes longer than that: see what `up` says.")
            time.sleep(0.1)
        if note["failed"]:
            self.stderr.write(note["failed"])
            sys.exit(1)
        self.stdout.write("Every process was restarted.")


def running_pid(data: Path) -> int:
    """The process that holds the data directory."""
    try:
        with (data / "up.lock").open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _url, pid = (data / "up.lock").read_text().split()
        return int(pid)
    except FileNotFoundError:
        pass
    raise CommandError(f"Nothing runs on {data}: start it with `python3 manage.py up`.")
