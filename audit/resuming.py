"""Going on with an export that was cut short: each line says which leaf it is."""

from __future__ import annotations

import json
from typing import BinaryIO


def cut_to_whole_lines(file: BinaryIO) -> tuple[int, int] | None:
    """The leaf that comes next, and the size of the record that is exported; None, and an empty
    file, if no leaf was written. The file is left at its end, after its last whole line."""
    size, last, end = 0, b"", 0
    for line in file:
        if not line.endswith(b"\n"):
            break
        end += len(line)
        if line.startswith(b'{"checkpoint":'):
            # The last of them is of the whole record.
            size = int(json.loads(line)["checkpoint"].split("\n")[1])
        else:
            last = line
    end = end if last else 0
    file.seek(end)
    file.truncate()
    return (json.loads(last)["index"] + 1, size) if last else None
