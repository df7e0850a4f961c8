"""`manage.py wal_archive`: which moments the base backups and the archived log reach.

With `--at TIME` it names the base backup for a recovery to that time, and its settings.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.embedded import base_backups
from config.embedded.base_backups import BaseBackup, CannotRecover

SETTINGS = """\
restore_command = 'cp {archive}/%f %p'
recovery_target_time = '{at}'
recovery_target_action = 'promote'"""


class Command(BaseCommand):
    help = "Show which moments can be recovered, find the base backup for one, or remove old files."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("archive", type=Path, help="the folder of COUNTERSIGN_WAL_ARCHIVE")
        parser.add_argument("backups", type=Path, help="the folder with the base backups")
        parser.add_argument(
            "--at", type=moment, metavar="TIME", help="a time to recover to: 2026-11-28T06:40:00Z"
        )
        parser.add_argument(
            "--prune",
            type=int,
            metavar="DAYS",
            help="remove what no moment of the last so many days needs",
        )

    def handle(
        self,
        *,
        archive: Path,
        backups: Path,
        at: datetime | None,
        prune: int | None,
        **options: Any,
    ) -> None:
        try:
            if prune is not None:
                self.stdout.write(self._prune(archive, backups, prune))
            elif at:
                self.stdout.write(self._settings(archive, backups, at))
            else:
                self.stdout.write(self._overview(archive, backups))
        except (CannotRecover, OSError) as error:
            raise CommandError(str(error)) from error

    def _prune(self, archive: Path, backups: Path, days: int) -> str:
        if days < 1:
            raise CommandError("--prune needs a number of days from 1 on.")
        keep, now = timedelta(days=days), datetime.now(UTC)
        return str(base_backups.prune(archive, backups, keep=keep, now=now))

    def _settings(self, archive: Path, backups: Path, at: datetime) -> str:
        read = base_backups.read_archive(archive)
        chosen = base_backups.backup_for(at, base_backups.read_backups(backups), read)
        return f"{chosen.path}\n{SETTINGS.format(archive=archive.resolve(), at=at.isoformat(' '))}"

    def _overview(self, archive: Path, backups: Path) -> str:
        read, found = base_backups.read_archive(archive), base_backups.read_backups(backups)
        lines = [f"{archive}: {len(read.segments)} files of the log."]
        return "\n".join([*lines, *(_line(read, one) for one in found)])


def _line(archive: base_backups.Archive, backup: BaseBackup) -> str:
    if backup.finished_at is None:
        return f"{backup.path}: not finished."
    if not archive.reaches(backup):
        return f"{backup.path}: made after the moment to which the database was recovered since."
    try:
        base_backups.require_whole(backup, archive)
    except CannotRecover as error:
        return str(error)
    return f"{backup.path}: any moment since {backup.finished_at:%Y-%m-%d %H:%M:%S} UTC."


def moment(text: str) -> datetime:
    read = datetime.fromisoformat(text)
    return read if read.tzinfo else read.replace(tzinfo=UTC)
