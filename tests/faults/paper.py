"""Records that only grow: one JSON line at a time, in the file before `write` returns."""

import json
import os
import time
from collections import Counter
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
    # Somebody may be in the middle of the last line.
    whole, _, _begun = path.read_bytes().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines()]


def arguments_in(body: bytes) -> str:
    """Of a `tools/call`, as the very characters that were received."""
    text = body.decode()
    begin = text.index('"arguments":') + len('"arguments":')
    begin += len(text[begin:]) - len(text[begin:].lstrip())
    _value, end = json.JSONDecoder().raw_decode(text, begin)
    return text[begin:end]


def count_receipts(paper: Path) -> Counter[str]:
    """By nonce, as a server that is started again finds them."""
    return Counter(line["nonce"] for line in read(paper)) if paper.exists() else Counter()
