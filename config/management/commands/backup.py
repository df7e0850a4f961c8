"""`manage.py backup PATH`: one consistent file, of a running installation or of one at rest.

In a folder it has a name by its time, and `--keep` removes the oldest of these once it is whole.
"""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config import archive, backups, host
from config.pgtools import NoProgram, ProgramFailed


class Command(BaseCommand):
    help = "Write a backup of everything to one file, or check one with --check."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, help="a new file, or a folder for one")
        parser.add_argument(
            "--keep", type=int, metavar="N", help="leave the newest N that were made in this folder"
        )
        parser.add_argument("--check", action="store_true", help="is the file whole? Writes none")
        host.add_data_argument(parser)

    def handle(
        self, *, path: Path, check: bool, data: Path, keep: int | None, **options: Any
    ) -> None:
        if keep is not None and (keep < 1 or check or not path.is_dir()):
            raise CommandError("--keep needs a number from 1 on, and a folder that exists.")
        folder = path = path.resolve()
        if path.is_dir() and not check:
            path /= backups.name_now()
        try:
            manifest = archive.read(path) if check else self._make(path, data.resolve())
        except FileExistsError:
            raise CommandError(f"{path} is there already: choose another name.") from None
        except (archive.BadBackup, NoProgram, ProgramFailed, OSError) as error:
            if not check:
                host.record_failure("backup.failed", str(error), path=str(path))
            raise CommandError(str(error)) from error
        size = sum(member["size"] for member in manifest["members"].values())
        self.stdout.write(
            f"{path}: {size:,} bytes of {manifest['taken_at']}, "
            f"{manifest['record']['leaves']} sealed entries."
        )
        if keep is not None:
            for removed in backups.remove_oldest(folder, keep=keep):
                self.stdout.write(f"{removed}: removed.")

    def _make(self, path: Path, data: Path) -> dict[str, Any]:
        host.enter(data)
        backups.make(path, by=host.actor().name)
        # Read once more from the disk: older ones may be removed for it.
        return archive.read(path)
