"""`manage.py restore PATH`: a backup put back and declared; `--declare`: one put back by hand."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit import erasure_ledger
from audit.erasure_ledger import LedgerUnusable
from audit.live import check_live
from audit.sealing import seal_all
from config import archive, backups, host, restoring, secret_rotation
from config.pgtools import NoProgram, ProgramFailed
from config.secret import SECRET


class Command(BaseCommand):
    help = "Put a backup back into a stopped or paused installation; nothing is sent twice."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, nargs="?")
        parser.add_argument(
            "--declare",
            action="store_true",
            help="the database was restored by other means, or a restore broke off: declare it",
        )
        parser.add_argument(
            "--anchor", type=Path, action="append", default=[], help="checkpoints kept elsewhere"
        )
        parser.add_argument(
            "--without-anchor", action="store_true", help="nobody kept a checkpoint of the record"
        )
        parser.add_argument(
            "--without-copy",
            action="store_true",
            help="do not keep a backup of what is there now",
        )
        parser.add_argument("--ledger", type=Path, help="a copy of the ledger of erasures")
        parser.add_argument(
            "--without-ledger",
            action="store_true",
            help="there is no ledger of erasures: what was erased since the backup comes back",
        )
        host.add_data_argument(parser)

    def handle(self, **options: Any) -> None:
        if bool(options["path"]) == options["declare"]:
            raise CommandError("Give the path of a backup, or --declare.")
        try:
            manifest = archive.read(options["path"].resolve()) if options["path"] else None
            host.enter(options["data"].resolve(), may_be_new=True)
            if manifest is not None:
                self._restore(options["path"].resolve(), manifest, options)
            self._declare(options)
        except (
            restoring.RestoreRefused,
            LedgerUnusable,
            archive.BadBackup,
            NoProgram,
            ProgramFailed,
            OSError,
        ) as error:
            raise CommandError(str(error)) from error

    def _restore(self, path: Path, manifest: dict[str, Any], options: dict[str, Any]) -> None:
        restoring.check_release(manifest)
        restoring.check_standing()
        restoring.check_anchors(options["anchor"], without_anchor=options["without_anchor"])
        restoring.check_ledger(
            manifest, options["ledger"], without_ledger=options["without_ledger"]
        )
        if restoring.is_other_record(manifest):
            self._take_secret(path, manifest)
        if backups.has_record():
            seal_all()
            if not options["without_copy"]:
                self._keep_copy()
        with restoring.sealing_stopped():
            restoring.note_present(manifest)
            restoring.replace_database(path)
        for sentence in restoring.put_files_back(path, manifest):
            self.stderr.write(sentence)

    def _take_secret(self, path: Path, manifest: dict[str, Any]) -> None:
        """On a new host; returns in no process that knows the old one."""
        if backups.has_record():
            raise restoring.RestoreRefused(
                "What is here is the record of another installation, with another secret. Restore "
                "into an empty data directory or database."
            )
        kept = settings.DATA_DIR / SECRET
        if os.environ.get("COUNTERSIGN_SECRET_KEY") or SECRET not in manifest["members"]:
            raise restoring.RestoreRefused(
                "The backup belongs to another secret: set COUNTERSIGN_SECRET_KEY to the one that "
                "the installation had when it was made."
            )
        if kept.exists() and kept.read_bytes() == archive.content(path, SECRET):
            raise restoring.RestoreRefused("The backup's secret is not its database's.")
        kept.unlink(missing_ok=True)
        archive.extract(path, SECRET, kept)
        os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606 ourselves

    def _keep_copy(self) -> None:
        folder = settings.DATA_DIR / "backups"
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"before-restore-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.tar"
        backups.make(path, by=host.actor().name)
        self.stdout.write(f"What was there is kept in {path}.")

    def _declare(self, options: dict[str, Any]) -> None:
        if options["ledger"] and options["declare"]:
            erasure_ledger.adopt(options["ledger"])
        # A restore that broke off may have left it without grants, or with older tables.
        restoring.migrate()
        anchors = restoring.anchors_of(options["anchor"])
        self.stdout.write(
            restoring.declare(
                anchors,
                by=host.actor(),
                without_anchor=options["without_anchor"],
                without_ledger=options["without_ledger"],
            )
        )
        # Of a backup from before a rotation.
        if secret_rotation.is_unfinished():
            secret_rotation.reseal(by=host.actor())
        found = check_live(anchors)
        for sentence in [*found.wrong, *found.restored]:
            self.stdout.write(sentence)
        if found.wrong:
            sys.exit(1)
