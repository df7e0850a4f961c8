"""Old base backups and files of the archived log are removed, and each moment of the kept period
is recovered afterwards: by a real PostgreSQL."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command

from config.embedded import base_backups, wal_archive
from config.embedded.base_backups import CannotRecover, TooEarly, prune, read_backups
from config.embedded.postgres import SUPERUSER, Postgres
from config.embedded.service import CannotStart, environment, hand_over, password, wait_until
from config.embedded.wal_archive import Pruning
from config.installation import prune_archive
from tests.services import running

FAST = {"fsync": "off", "log_min_messages": "fatal"}
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
DAY = timedelta(days=1)
LABEL = "START WAL LOCATION: 0/0 (file {})\nCHECKPOINT LOCATION: 0/0\n"
MANIFEST = '{{"WAL-Ranges": [{{"Timeline": 1, "Start-LSN": "0/0", "End-LSN": "{}"}}]}}'


@pytest.fixture
def folder() -> Iterator[Path]:
    """pytest's directories are for their owner only; PostgreSQL may run as somebody else."""
    with tempfile.TemporaryDirectory(prefix="countersign-wal-") as name:
        path = Path(name)
        path.chmod(0o755)
        for inner in ("archive", "bases"):
            (path / inner).mkdir()
            (path / inner).chmod(0o777)
        yield path


class Cluster:
    """An embedded PostgreSQL that archives, and what was written in it when."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.archive, self.bases = folder / "archive", folder / "bases"
        data.mkdir(mode=0o711)
        self.data = data
        archiving = {
            "archive_mode": "on",
            "archive_command": wal_archive.command(str(self.archive)),
        }
        self.postgres = Postgres(data, settings=FAST | archiving)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.postgres.url(SUPERUSER, "postgres"), autocommit=True)

    def write(self, number: int) -> datetime:
        """The time between this row and the next, which is in another file of the log."""
        with self.connect() as link:
            link.execute("INSERT INTO written VALUES (%s)", [number])
            ((at,),) = link.execute("SELECT clock_timestamp()").fetchall()
            ((place,),) = link.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchall()
        assert wait_until((self.archive / place).exists, seconds=30)
        assert isinstance(at, datetime)
        return at

    def rows(self) -> list[tuple[int]]:
        with self.connect() as link:
            return link.execute("SELECT number FROM written ORDER BY 1").fetchall()

    def base_backup(self, name: str) -> Path:
        path = self.bases / name
        argv = [str(self.postgres.programs / "pg_basebackup"), f"--host={self.postgres.sockets}"]
        argv += [f"--username={SUPERUSER}", f"--pgdata={path}", "--checkpoint=fast", "--no-sync"]
        secret = {"PGPASSWORD": password(self.data, SUPERUSER)}
        subprocess.run(argv, env=environment() | secret, check=True)
        return path

    def recovered(self, base: Path, settings: str) -> Postgres:
        """Another cluster, by the steps of the guide."""
        shutil.copytree(base, self.postgres.home)
        (self.postgres.home / "recovery.signal").touch()
        with (self.postgres.home / "postgresql.auto.conf").open("a") as file:
            file.write(settings)
        for path in [self.postgres.home, *self.postgres.home.rglob("*")]:
            hand_over(path, self.postgres.identity)
        return self.postgres


def command(*arguments: object, **options: Any) -> str:
    out = StringIO()
    call_command("wal_archive", *map(str, arguments), stdout=out, **options)
    return out.getvalue()


@pytest.mark.long
def test_each_moment_of_the_kept_period_is_recovered_after_pruning(folder: Path) -> None:
    cluster, moments = Cluster(folder, folder / "data"), []
    with running(cluster.postgres, folder / "log"):
        with cluster.connect() as link:
            link.execute("CREATE TABLE written (number int)")
        for n in range(3):
            cluster.base_backup(f"base-{n}")
            moments += [cluster.write(2 * n), cluster.write(2 * n + 1)]
    before = set(os.listdir(cluster.archive))
    # From the second row after the middle backup on.
    now = datetime.now(UTC)

    pruned = prune(cluster.archive, cluster.bases, keep=now - moments[2], now=now)

    assert [path.name for path in pruned.backups] == ["base-0"]
    gone = before - set(os.listdir(cluster.archive))
    assert pruned.segments == len([name for name in gone if len(name) == 24]) > 0
    # Also the note of the base backup.
    assert any(name.endswith(".backup") for name in gone)
    left = min(name for name in os.listdir(cluster.archive) if len(name) == 24)
    assert f"(file {left})" in (cluster.bases / "base-1" / "backup_label").read_text()

    for n in (2, 3, 4):
        base, settings = command(cluster.archive, cluster.bases, at=moments[n]).split("\n", 1)
        assert base.endswith(f"base-{n // 2}")
        other = Cluster(folder, folder / f"recovered-{n}")
        (other.data / "passwords.json").write_bytes((cluster.data / "passwords.json").read_bytes())
        # It archives nothing here: it is left again.
        other.postgres.settings["archive_mode"] = "off"
        with running(other.recovered(Path(base), settings), folder / f"log-{n}"):
            rows = other.rows()
        assert rows == [(number,) for number in range(n + 1)]

    with pytest.raises(CommandError, match="cannot be recovered: the oldest base backup was"):
        command(cluster.archive, cluster.bases, at=moments[1])
    assert "base-1: any moment since" in command(cluster.archive, cluster.bases)


class Files:
    """Folders as PostgreSQL and pg_basebackup leave them, with nothing in the files."""

    def __init__(self, folder: Path) -> None:
        self.archive, self.bases = folder / "archive", folder / "bases"

    def log(self, *numbers: int, timeline: int = 1) -> None:
        for number in numbers:
            (self.archive / segment(number, timeline)).touch()

    def base(self, name: str, first: int, age: timedelta, *, timeline: int = 1) -> Path:
        """Finished so long ago, at the beginning of its second segment."""
        path = self.begun(name, first, timeline=timeline)
        manifest = path / "backup_manifest"
        log, within = divmod(first + 1, base_backups.IN_A_LOG)
        manifest.write_text(MANIFEST.format(f"{log:X}/{within:02X}000000"))
        at = (NOW - age).timestamp()
        os.utime(manifest, (at, at))
        return path

    def begun(self, name: str, first: int, *, timeline: int = 1) -> Path:
        path = self.bases / name
        path.mkdir()
        (path / "backup_label").write_text(LABEL.format(segment(first, timeline)))
        return path

    def prune(self, days: int) -> base_backups.Pruned:
        return prune(self.archive, self.bases, keep=days * DAY, now=NOW)

    def kept(self) -> tuple[set[str], set[int]]:
        archive = base_backups.read_archive(self.archive)
        return {path.name for path in self.bases.iterdir()}, set(archive.segments)


def segment(number: int, timeline: int = 1) -> str:
    return f"{timeline:08X}{base_backups.name_of(number)}"


@pytest.fixture
def files(folder: Path) -> Files:
    return Files(folder)


def test_the_newest_backup_before_the_period_stays_with_its_log(files: Files) -> None:
    files.log(*range(250, 262))
    files.base("a", 251, 9 * DAY)
    files.base("b", 254, 8 * DAY)
    files.base("c", 257, 3 * DAY)

    files.prune(7)

    assert files.kept() == ({"b", "c"}, set(range(254, 262)))
    assert not files.prune(7)


def test_nothing_goes_before_a_backup_is_older_than_the_period(files: Files) -> None:
    files.log(1, 2, 3)
    files.base("a", 2, 3 * DAY)

    with pytest.raises(TooEarly):
        files.prune(7)

    assert files.kept() == ({"a"}, {1, 2, 3})
    # Said to nobody: so it is in the first days.
    assert prune_archive(Pruning(files.archive, files.bases, 7 * DAY)) == ""


def test_a_gap_in_the_log_removes_nothing(files: Files) -> None:
    files.log(1, 2, 3, 5, 6)
    files.base("a", 1, 9 * DAY)
    files.base("b", 2, 8 * DAY)

    with pytest.raises(CannotRecover, match=f"{segment(4)[8:]}, which is missing in"):
        files.prune(7)

    assert files.kept() == ({"a", "b"}, {1, 2, 3, 5, 6})
    said = prune_archive(Pruning(files.archive, files.bases, 7 * DAY))
    assert said.startswith("Nothing was removed from the archive of the log: From ")


def test_a_backup_that_is_being_made_keeps_its_log(files: Files) -> None:
    files.log(1, 2, 3, 4, 5)
    files.begun("broken", 2)
    files.base("a", 4, 8 * DAY)

    files.prune(7)

    assert files.kept() == ({"broken", "a"}, {2, 3, 4, 5})


def test_a_backup_of_a_branch_that_was_left_recovers_nothing(files: Files) -> None:
    files.log(1, 2, 3, 4, 5)
    files.log(3, 4, 5, 6, timeline=2)
    (files.archive / "00000002.history").write_text("1\t0/3800000\tbefore 2026-11-20\n")
    files.base("a", 1, 10 * DAY)
    files.base("left", 4, 9 * DAY)
    files.base("b", 5, 8 * DAY, timeline=2)

    files.prune(9)

    # Only the first of them was made before the branch and the period.
    assert files.kept()[0] == {"a", "left", "b"}
    files.prune(8)
    assert files.kept() == ({"b"}, {5, 6})
    assert (files.archive / "00000002.history").exists()


def test_a_folder_that_cannot_be_read_as_a_backup_removes_nothing(files: Files) -> None:
    files.log(1, 2, 3)
    files.base("a", 1, 9 * DAY)
    files.base("b", 2, 8 * DAY)
    (files.bases / "lost+found").mkdir()
    assert len(read_backups(files.bases)) == 2
    (files.bases / "started").mkdir()
    (files.bases / "started" / "PG_VERSION").touch()

    with pytest.raises(CannotRecover, match="started is no base backup"):
        files.prune(7)

    assert files.kept()[1] == {1, 2, 3}


def test_what_an_attempt_left_is_removed_by_the_next(files: Files) -> None:
    files.log(1, 2, 3)
    files.base("b", 2, 8 * DAY)
    files.begun(f"a{base_backups.GOING}", 1)

    files.prune(7)

    assert files.kept() == ({"b"}, {2, 3})


@pytest.mark.parametrize(
    ("days", "archive", "bases", "said"),
    [
        ("x", "/a", "/b", "must be a number of days"),
        ("0", "/a", "/b", "must be a number of days"),
        ("7", "", "/b", "needs COUNTERSIGN_WAL_ARCHIVE"),
        ("7", "/a", "", "the absolute path of the folder"),
        ("7", "/a", "b", "the absolute path of the folder"),
    ],
)
def test_settings_that_do_not_fit_stop_the_start(
    days: str, archive: str, bases: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTERSIGN_WAL_ARCHIVE", archive)
    monkeypatch.setenv(wal_archive.BASE_BACKUPS, bases)
    monkeypatch.setenv(wal_archive.KEEP_DAYS, "")
    assert wal_archive.pruning() is None
    monkeypatch.setenv(wal_archive.KEEP_DAYS, days)

    with pytest.raises(CannotStart, match=said):
        wal_archive.pruning()


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to run as another user")
def test_a_folder_that_postgresql_cannot_write_to_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COUNTERSIGN_WAL_ARCHIVE", raising=False)
    assert wal_archive.find_unwritable("self") == ""
    monkeypatch.setenv("COUNTERSIGN_WAL_ARCHIVE", str(tmp_path / "none"))
    assert f"cannot write to {tmp_path / 'none'} " in wal_archive.find_unwritable("self")
    tmp_path.chmod(0o700)
    monkeypatch.setenv("COUNTERSIGN_WAL_ARCHIVE", str(tmp_path))
    assert wal_archive.find_unwritable("self") == ""
    assert f"cannot write to {tmp_path} " in wal_archive.find_unwritable("user:65534:65534")


def test_the_settings_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERSIGN_WAL_ARCHIVE", "/a")
    monkeypatch.setenv(wal_archive.BASE_BACKUPS, "/b")
    monkeypatch.setenv(wal_archive.KEEP_DAYS, "7")

    assert wal_archive.pruning() == Pruning(Path("/a"), Path("/b"), 7 * DAY)
