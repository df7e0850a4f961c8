"""A backup's file: whole or not there, for its owner alone, and whoever changed it is found out."""

import json
import tarfile
from pathlib import Path

import pytest

from config import archive
from config.archive import BadBackup

FACTS = {"taken_at": "2026-11-22T18:00:00+00:00"}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    (tmp_path / "dump").write_bytes(b"the database")
    (tmp_path / "key").write_bytes(b"the secret")
    members = {archive.DATABASE: tmp_path / "dump", "secret.key": tmp_path / "key"}
    archive.write(tmp_path / "backup.tar", FACTS, members)
    return tmp_path / "backup.tar"


def test_it_says_what_it_holds(made: Path) -> None:
    manifest = archive.read(made)

    assert manifest["taken_at"] == FACTS["taken_at"]
    assert manifest["members"]["secret.key"]["size"] == len("the secret")
    assert archive.content(made, "secret.key") == b"the secret"
    assert made.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in made.parent.glob(".backup*")] == []


def test_it_never_replaces_another(made: Path) -> None:
    before = made.read_bytes()

    with pytest.raises(FileExistsError):
        archive.write(made, FACTS, {})

    assert made.read_bytes() == before


def test_what_cannot_be_read_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        archive.write(tmp_path / "backup.tar", FACTS, {"gone": tmp_path / "gone"})

    assert list(tmp_path.iterdir()) == []


def again(path: Path, members: dict[str, bytes]) -> Path:
    other = path.with_name("other.tar")
    with tarfile.open(other, "w") as tar:
        for name, content in members.items():
            archive._add(tar, name, content)
    return other


def test_a_changed_a_missing_and_an_added_member_are_found(made: Path) -> None:
    names = (archive.MANIFEST, archive.DATABASE, "secret.key")
    members = {name: archive.content(made, name) for name in names}
    lacking = {name: members[name] for name in names[:2]}

    for changed, said in (
        ({**members, "secret.key": b"another key"}, "is not what was put there"),
        (lacking, "lacks secret.key"),
        ({**members, "more": b""}, "not in its manifest"),
        ({"secret.key": b""}, "no backup of Countersign"),
        ({archive.MANIFEST: json.dumps({"product": "x"}).encode()}, "another product"),
    ):
        with pytest.raises(BadBackup, match=said):
            archive.read(again(made, changed))


def test_half_a_file_and_no_file_are_no_backup(made: Path) -> None:
    half = made.with_name("half.tar")
    half.write_bytes(made.read_bytes()[:700])

    for path in (half, made.with_name("nowhere"), made.parent / "dump"):
        with pytest.raises(BadBackup):
            archive.read(path)
