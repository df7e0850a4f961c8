"""A backup: one tar file, readable by its owner alone, whose first member says what the rest is."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from core.private_files import sync_folder

FORMAT = 1
MANIFEST, DATABASE = "manifest.json", "database.dump"
CHUNK = 1024 * 1024


class BadBackup(Exception):
    """It is no backup of ours, or not as it was made."""


def write(path: Path, facts: Mapping[str, Any], members: Mapping[str, Path]) -> dict[str, Any]:
    """The whole file or none; its manifest. Raises FileExistsError."""
    if path.exists():
        raise FileExistsError(path)
    listed = {name: _measured(file) for name, file in members.items()}
    manifest = {"product": "countersign", "format": FORMAT, **facts, "members": listed}
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with private(draft) as file:
            with tarfile.open(fileobj=file, mode="w") as tar:
                _add(tar, MANIFEST, json.dumps(manifest, indent=1).encode())
                for name, source in members.items():
                    with source.open("rb") as content:
                        tar.addfile(_entry(name, source.stat().st_size), content)
            file.flush()
            os.fsync(file.fileno())
        # Not over another one that came meanwhile.
        os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)
    return manifest


def read(path: Path) -> dict[str, Any]:
    """The manifest, once every member is what it says. Raises BadBackup."""
    with _opened(path) as tar:
        manifest = _manifest(tar)
        wanted = dict(manifest["members"])
        while entry := tar.next():
            listed = wanted.pop(entry.name, None)
            if listed is None:
                raise BadBackup(f"{entry.name} is in {path} and not in its manifest.")
            if _measured_stream(_content(tar, entry)) != listed:
                raise BadBackup(f"{entry.name} in {path} is not what was put there.")
        if wanted:
            raise BadBackup(f"{path} lacks {', '.join(sorted(wanted))}.")
    return manifest


def extract(path: Path, name: str, target: Path) -> None:
    with _opened(path) as tar, private(target) as file:
        source = _content(tar, tar.getmember(name))
        while chunk := source.read(CHUNK):
            file.write(chunk)


def content(path: Path, name: str) -> bytes:
    with _opened(path) as tar:
        return _content(tar, tar.getmember(name)).read()


@contextmanager
def private(path: Path) -> Iterator[IO[bytes]]:
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        yield file


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(path, "r:") as tar:
            yield tar
    except (OSError, tarfile.TarError, KeyError) as error:
        raise BadBackup(f"{path} cannot be read as a backup: {error}") from error


def _manifest(tar: tarfile.TarFile) -> dict[str, Any]:
    first = tar.next()
    if first is None or first.name != MANIFEST:
        raise BadBackup("Its first member is no manifest: this is no backup of Countersign.")
    try:
        manifest: dict[str, Any] = json.loads(_content(tar, first).read())
        known = manifest["product"] == "countersign" and manifest["format"] == FORMAT
    except (ValueError, KeyError, TypeError) as error:
        raise BadBackup(f"Its manifest cannot be read: {error!r}") from error
    if not known:
        raise BadBackup("It is of another product, or of a later release.")
    return manifest


def _content(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(entry)
    if content is None:
        raise BadBackup(f"{entry.name} is no file.")
    return content


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    tar.addfile(_entry(name, len(content)), io.BytesIO(content))


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    return entry


def _measured(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return _measured_stream(file)


def _measured_stream(file: IO[bytes]) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    while chunk := file.read(CHUNK):
        digest.update(chunk)
        size += len(chunk)
    return {"size": size, "sha256": digest.hexdigest()}
