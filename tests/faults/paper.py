"""Records that only grow: one JSON line at a time, in the file before `write` returns."""

import json
import os
import time
from pathlib import Path
from typing import Any


class Paper:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def write(self, **line: Any) -> None:
        os.write(self._file, json.dumps({"at": time.time(), **line}).encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]
