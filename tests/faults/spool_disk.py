"""A disk that forgets, when its power is cut, what nobody had forced to it.

The suite's hook notes what the product's processes give to fsync: a file by its number, a folder
with the names that it had then.
"""

import json
import os
from pathlib import Path


def note(path: Path, descriptor: int) -> None:
    """Called in the product's process, after the real fsync."""
    status = os.fstat(descriptor)
    names = os.listdir(descriptor) if (status.st_mode & 0o170000) == 0o040000 else None
    line = {"inode": status.st_ino, "size": status.st_size, "names": names}
    file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(file, json.dumps(line).encode() + b"\n")
    os.close(file)


def power_cut(spool: Path, synced: Path) -> int:
    """Take away what was not forced to the disk; how many files that were."""
    if not spool.exists():
        return 0
    lines = (
        [json.loads(line) for line in synced.read_bytes().splitlines()] if synced.exists() else []
    )
    sizes = {line["inode"]: line["size"] for line in lines}
    names: dict[int, set[str]] = {}
    for line in lines:
        if line["names"] is not None:
            names.setdefault(line["inode"], set()).update(line["names"])
    lost = 0
    for path in [path for path in spool.rglob("*") if path.is_file()]:
        status = path.stat()
        known = path.name in names.get(path.parent.stat().st_ino, set())
        if status.st_size and not (known and sizes.get(status.st_ino) == status.st_size):
            lost += 1
            path.unlink()
    return lost
