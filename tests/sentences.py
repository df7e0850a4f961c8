"""`python -m tests.sentences REVISION`: tests that look for sentences which are no more.

Compares the message file with the one of a revision, in both languages. Named are the texts of
tests that hold, or are a part of, a sentence that has gone since: a long test fails an hour later
otherwise.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from core.messages.catalogue import Catalogue, read
from core.messages.files import PO, ROOT

TESTS = ROOT / "tests"
_PLACEHOLDER = re.compile(r"%%|%(?:\(\w+\))?[-0-9.]*[sdrf]|\{\w*\}|\n")
# Shorter pieces stand in many sentences. Chinese says more with fewer characters.
_SHORTEST, _SHORTEST_CHINESE = 9, 4


def main() -> None:
    before, now = _at(sys.argv[1]), read(PO)
    found = sorted({*_gone(_english(before), _english(now), _SHORTEST)})
    found += sorted({*_gone(_chinese(before), _chinese(now), _SHORTEST_CHINESE)})
    for place, text in found:
        sys.stdout.write(f"{place}: {text}\n")
    sys.exit(bool(found))


def _at(revision: str) -> Catalogue:
    name = f"{revision}:{PO.relative_to(ROOT).as_posix()}"
    with tempfile.NamedTemporaryFile(suffix=".po") as file:
        subprocess.run(["git", "show", name], cwd=ROOT, stdout=file, check=True)
        return read(Path(file.name))


def _english(catalogue: Catalogue) -> set[str]:
    return {text for key in catalogue for text in (key.msgid, key.plural) if text}


def _chinese(catalogue: Catalogue) -> set[str]:
    return {message.translation for message in catalogue.values() if message.translation}


def _gone(before: set[str], now: set[str], shortest: int) -> Iterator[tuple[str, str]]:
    present = "\n".join(now)
    pieces = {piece.strip() for one in before - now for piece in _PLACEHOLDER.split(one)}
    gone = [one for one in pieces if len(one) >= shortest and one not in present]
    wholes = "\n".join(before - now)
    for place, text in _texts():
        is_part = len(text) >= shortest and text in wholes and text not in present
        if is_part or any(one in text for one in gone):
            yield place, text


def _texts() -> Iterator[tuple[str, str]]:
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


if __name__ == "__main__":
    main()
