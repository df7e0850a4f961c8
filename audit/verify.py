#!/usr/bin/env python3
"""Checks exported entries offline: needs this one file, Python 3.11 and `cryptography`.

    python verify.py EXPORT.jsonl --key KEY [--anchor CHECKPOINTS]...

KEY is the line that `manage.py audit_key` prints, got from somewhere else than the export. Anchors
are files of checkpoints that were kept somewhere else. Exit code 0: everything holds. 1: something
does not, and what is said. 2: there was nothing to check it against.

How it works: an entry's leaf is SHA-256(0x00, salt, body), where the body is the entry as JSON with
sorted keys, without spaces, in ASCII. Leaves make an RFC 6962 Merkle tree in the order of sealing.
A checkpoint is a signed note (c2sp.org/tlog-checkpoint): name, size, root, Ed25519 signature.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

ED25519 = b"\x01"
ORIGIN = "countersign"


class Broken(Exception):
    """What was read is no checkpoint, key or export, or its signature is not the key's."""


def canonical(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def leaf_hash(salt: bytes, body: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + salt + body).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class Peaks:
    """A tree that only grows, as the roots of its whole subtrees."""

    def __init__(self, size: int = 0, peaks: Iterable[bytes] = ()) -> None:
        self.size, self.peaks = size, list(peaks)

    def append(self, leaf: bytes) -> Iterator[tuple[int, int, bytes]]:
        """(level, index, hash) of each subtree that this leaf made whole."""
        index, level, made = self.size, 0, leaf
        while index & 1:
            made = node_hash(self.peaks.pop(), made)
            index, level = index >> 1, level + 1
            yield level, index, made
        self.peaks.append(made)
        self.size += 1

    def root(self) -> bytes:
        if not self.peaks:
            return hashlib.sha256().digest()
        root = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            root = node_hash(peak, root)
        return root


def root_by_path(index: int, size: int, leaf: bytes, path: Sequence[bytes]) -> bytes | None:
    """The root that an inclusion path leads to (RFC 9162, 2.1.3.2); None if it cannot be one."""
    if not 0 <= index < size:
        return None
    here, last, root = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return None
        if here & 1 or here == last:
            root = node_hash(sibling, root)
            while not here & 1 and here:
                here, last = here >> 1, last >> 1
        else:
            root = node_hash(root, sibling)
        here, last = here >> 1, last >> 1
    return root if last == 0 else None


@dataclass(frozen=True, slots=True)
class Key:
    """Who signs checkpoints: `name+id+base64`, as signed notes write it."""

    name: str
    public: bytes

    @property
    def id(self) -> bytes:
        text = self.name.encode() + b"\n" + ED25519 + self.public
        return hashlib.sha256(text).digest()[:4]

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(ED25519 + self.public).decode()}"

    @classmethod
    def parse(cls, text: str) -> Key:
        try:
            name, known, encoded = text.strip().split("+", 2)
            raw = base64.b64decode(encoded, validate=True)
        except ValueError as error:
            raise Broken("A key reads name+id+base64.") from error
        key = cls(name, raw[1:])
        if raw[:1] != ED25519 or len(raw) != 33 or key.id.hex() != known:
            raise Broken("This is no Ed25519 key, or a digit of it is wrong.")
        return key


@dataclass(frozen=True, slots=True)
class Root:
    """What a checkpoint says."""

    size: int
    root: bytes
    time: str


def checkpoint_text(key: Key, size: int, root: bytes, time: str) -> str:
    return f"{key.name}\n{size}\n{base64.b64encode(root).decode()}\ntime {time}\n"


def read_note(note: str, key: Key) -> Root:
    """Raises Broken unless `key` signed it."""
    text, _, signatures = note.partition("\n\n")
    text += "\n"
    if not any(_signed(line, text, key) for line in signatures.splitlines()):
        raise Broken("not signed by the given key")
    try:
        name, size, root, time, *_rest = text.splitlines()
        read = Root(int(size), base64.b64decode(root, validate=True), time.removeprefix("time "))
    except ValueError as error:
        raise Broken("no checkpoint") from error
    if name != key.name or len(read.root) != 32:
        raise Broken("a checkpoint of something else")
    return read


def _signed(line: str, text: str, key: Key) -> bool:
    try:
        dash, name, encoded = line.split(" ")
        raw = base64.b64decode(encoded, validate=True)
        if (dash, name, raw[:4]) != ("—", key.name, key.id):
            return False
        Ed25519PublicKey.from_public_bytes(key.public).verify(raw[4:], text.encode())
    except (ValueError, InvalidSignature):
        return False
    return True


def notes(text: str) -> Iterator[str]:
    """Signed notes of a file that has one after the other."""
    head: list[str] = []
    for line in text.splitlines():
        if line.startswith("— "):
            yield "\n".join(head).strip("\n") + f"\n\n{line}\n"
            head = []
        else:
            head.append(line)


@dataclass(slots=True)
class Findings:
    """What was checked, and what does not hold; the first wrong is the most telling."""

    entries: int = 0
    checkpoints: int = 0
    anchors: int = 0
    size: int = 0
    wrong: list[str] = field(default_factory=list)

    def say(self, sentence: str) -> None:
        self.wrong.append(sentence)


class Check:
    """Fed with leaves in order, compares the tree with what was signed on the way."""

    def __init__(self, key: Key, anchors: Iterable[str] = ()) -> None:
        self.key, self.found = key, Findings()
        self.tree = Peaks()
        self.roots: dict[int, bytes] = {}
        self.signed: list[tuple[str, Root]] = []
        self.proven: dict[int, bytes] = {}
        for note in anchors:
            if read := self._read(note, "an anchor"):
                self.found.anchors += 1
                self.signed.append(("an anchor", read))

    def checkpoint(self, note: str) -> None:
        if read := self._read(note, f"checkpoint {self.found.checkpoints + 1}"):
            self.found.checkpoints += 1
            self.signed.append(("a checkpoint", read))

    def expect(self) -> None:
        """After checkpoints, before leaves: which roots to remember."""
        self.wanted = {read.size for _, read in self.signed}
        self.roots[0] = self.tree.root()

    def leaf(self, index: int, leaf: bytes) -> None:
        if index != self.tree.size:
            self.found.say(
                f"Leaf {self.tree.size} is missing: after {self.tree.size - 1} comes {index}."
            )
        for _ in self.tree.append(leaf):
            pass
        if self.tree.size in self.wanted:
            self.roots[self.tree.size] = self.tree.root()

    def compare(self) -> None:
        good = 0
        self.found.size = self.tree.size
        for what, read in sorted(self.signed, key=lambda one: one[1].size):
            if read.size > self.tree.size:
                self.found.say(
                    f"Cut off: {what} of {read.time} speaks of {read.size} entries, "
                    f"and there are {self.tree.size}."
                )
            elif self.roots[read.size] != read.root:
                self.found.say(
                    f"Entries {good} to {read.size - 1} are not what was signed at {read.time}: "
                    "changed, left out, put in or put in another order."
                )
                return
            else:
                good = read.size

    def _read(self, note: str, what: str) -> Root | None:
        try:
            return read_note(note, self.key)
        except Broken as error:
            self.found.say(f"{what}: {error}.".capitalize())
            return None


def check_export(lines: Iterable[str], key: Key, anchors: Sequence[str] = ()) -> Findings:
    """A file of the whole record (checkpoints first), or of some entries with their paths."""
    check = Check(key, anchors)
    expected = False
    for number, text in enumerate(lines, start=1):
        try:
            line = json.loads(text)
            if "checkpoint" in line:
                check.checkpoint(line["checkpoint"])
                continue
            if not expected:
                check.expect()
                expected = True
            _entry(check, line, number)
        except (ValueError, KeyError, TypeError) as error:
            check.found.say(f"Line {number} cannot be read: {error!r}.")
            return check.found
    if not expected:
        check.expect()
    if not check.proven:
        check.compare()
    return check.found


def _entry(check: Check, line: Mapping[str, Any], number: int) -> None:
    check.found.entries += 1
    body = canonical(line["entry"])
    leaf, index = leaf_hash(bytes.fromhex(line["salt"]), body), int(line["index"])
    if "path" not in line:
        check.leaf(index, leaf)
        return
    path = [bytes.fromhex(sibling) for sibling in line["path"]]
    sizes = {read.size: read.root for _, read in check.signed}
    size = int(line["size"])
    check.proven[index] = leaf
    if size not in sizes:
        check.found.say(f"Line {number}: no signed checkpoint of {size} entries is there.")
    elif root_by_path(index, size, leaf, path) != sizes[size]:
        check.found.say(
            f"Line {number}: entry {line['entry'].get('id')} is not what was signed (leaf {index})."
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check exported entries offline.")
    parser.add_argument("export", type=Path)
    parser.add_argument("--key", required=True, help="name+id+base64, or a file that holds it")
    parser.add_argument("--anchor", type=Path, action="append", default=[])
    given = parser.parse_args(arguments)
    try:
        key = Key.parse(Path(given.key).read_text() if Path(given.key).is_file() else given.key)
        anchors = [note for path in given.anchor for note in notes(path.read_text())]
        with given.export.open() as file:
            found = check_export(file, key, anchors)
    except (Broken, OSError) as error:
        return _say(2, str(error))
    for sentence in found.wrong:
        _say(1, sentence)
    if found.wrong:
        return 1
    if not found.checkpoints + found.anchors:
        return _say(2, "Nothing signed was there to compare with.")
    kept = f" and {found.anchors} anchors" if found.anchors else ""
    return _say(0, f"{found.entries} entries hold, by {found.checkpoints} checkpoints{kept}.")


def _say(code: int, sentence: str) -> int:
    (sys.stderr if code else sys.stdout).write(sentence + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
