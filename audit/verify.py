#!/usr/bin/env python3
"""Checks exported entries offline: needs this one file, Python 3.11 and `cryptography`.

    python verify.py EXPORT.jsonl --key KEY [--anchor CHECKPOINTS]...

KEY is what `manage.py audit_key` prints, got from somewhere else than the export: one line, or a
file of some, since a key that was replaced goes on to prove what it signed in its time. Anchors are
files of checkpoints that were kept somewhere else. Exit code 0: everything holds. 1: something
does not, and what is said. 2: there was nothing to check it against. 3: everything holds that is
there, and a restore, which the record itself declares, dropped what is said.

How it works: an entry's leaf is SHA-256(0x00, form). The form of format 2 is a row of fields
(Form2), of which names, digests and details are commitments: SHA-256 of a salt and of what is
committed to. The form of format 1 is a salt and the entry as JSON with sorted keys, without spaces,
in ASCII. Leaves make an RFC 6962 Merkle tree in the order of sealing. A checkpoint is a signed note
(c2sp.org/tlog-checkpoint): name, size, root, Ed25519 signature.

After a restore the record goes on under another name, with `/2` at its end, from the leaves of the
backup. Its first entry of its own, `record.restored`, holds the last checkpoint under each earlier
name: what those speak of beyond the leaves that were kept is dropped, and beyond them cut off.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

ED25519 = b"\x01"
RESTORED = "record.restored"
# Names in its details the commitments of what says nothing any more.
FORGOTTEN = "record.forgotten"
# What the name of an invented record begins with (audit/demo.py), and what is said of it.
DEMO = "demo."
DEMO_NOTE = (
    "Demo: this record is invented. Its entries were written together and given times of the past; "
    "that they hold proves nothing about any call."
)
# What the details of an entry say then.
DETAILS_FORGOTTEN = {"forgotten": True}
# What an exported entry says: these, and nothing else.
COLUMNS = (
    "id",
    "at",
    "transaction",
    "action",
    "actor_kind",
    "actor_id",
    "actor",
    "call_id",
    "seq",
    "from_state",
    "to_state",
    "agent_id",
    "agent",
    "person_id",
    "person",
    "server",
    "tool",
    "definition_digest",
    "arguments_digest",
    "result_digest",
    "reason",
    "details",
)
# Bytes of a hash, and hashes of a whole tile (c2sp.org/tlog-tiles).
HASH, TILE = 32, 256
SALT = 16
# What a line of an export holds.
CHECKPOINT = {"checkpoint"}
LINE = {"index", "entry", "format", "salt", "salts", "names", "size", "path", "gone", "hash"}
# The first line of an archive, and its lines with what an entry's call was asked and answered.
ARCHIVE = {"archive", "start", "peaks", "origin"}
CALL = {"call", "result"}
# Of one whose payload was erased: with the id of the entry of that.
ERASED = {*CALL, "erased"}


class Broken(Exception):
    """The input is no checkpoint, key or export, or its signature is wrong."""


# Made once: what every leaf goes through.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode


def canonical(body: Mapping[str, Any]) -> bytes:
    return _encode(body).encode()


def leaf_hash(salt: bytes, body: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + salt + body).digest()


def peaks(hashes: Sequence[bytes]) -> list[bytes]:
    """The roots of the whole subtrees over these hashes, the largest first."""
    found, level = [], list(hashes)
    while level:
        if len(level) & 1:
            found.append(level.pop())
        level = [node_hash(*level[n : n + 2]) for n in range(0, len(level), 2)]
    return found[::-1]


def root_of(subtrees: Sequence[bytes]) -> bytes:
    """The root of a tree whose whole subtrees have these roots, the largest first."""
    if not subtrees:
        return hashlib.sha256().digest()
    root = subtrees[-1]
    for peak in reversed(subtrees[:-1]):
        root = node_hash(peak, root)
    return root


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def salt_of(salt: bytes, field: str) -> bytes:
    """Each field has one of its own, so that one can be forgotten and the others proved."""
    return hashlib.sha256(salt + field.encode()).digest()


def commitment_of(salt: bytes, value: bytes) -> bytes:
    """Says nothing of the value to whoever lacks the field's salt."""
    return hashlib.sha256(salt + value).digest()


def commitment_of_name(
    salt: bytes, kind: str, subject: int | None, text: str, server: str = "", definition: str = ""
) -> bytes:
    known = "" if subject is None else str(subject)
    parts = [kind, known, text, server, definition]
    return hashlib.sha256(salt + b"\0".join(part.encode() for part in parts)).digest()


class Form2:
    """The bytes of an entry of format 2: of each field its tag, length and value, in this order."""

    HEAD = b"countersign entry 2\n"
    # A tag is never given another meaning; a new field takes the next.
    FIELDS = (
        "id",
        "at",
        "transaction",
        "call_id",
        "seq",
        "from_state",
        "to_state",
        "action",
        "actor",
        "agent",
        "person",
        "tool",
        "context",
        "reason",
        "arguments",
        "result",
        "details",
    )
    TAGS = {name: bytes([tag]) for tag, name in enumerate(FIELDS, start=1)}

    def __init__(self) -> None:
        self.written = self.HEAD

    def add(self, name: str, value: bytes | None) -> None:
        """A field without a value is left out."""
        if value is not None:
            self.written += self.TAGS[name] + len(value).to_bytes(4, "big") + value

    def add_integer(self, name: str, value: int | None) -> None:
        self.add(name, None if value is None else value.to_bytes(8, "big", signed=True))

    def add_text(self, name: str, value: str) -> None:
        self.add(name, value.encode() or None)


def form_2(entry: Mapping[str, Any], opening: Mapping[str, Any]) -> bytes:
    """The body of an exported entry. `opening` has the salts of what the leaf commits to.

    Raises ValueError when the entry says what no leaf could commit to.
    """
    _check_spelling(entry)
    names, form = opening["names"], Form2()
    form.add_integer("id", entry["id"])
    form.add_integer("at", microseconds(datetime.fromisoformat(entry["at"])))
    form.add_integer("transaction", int(entry["transaction"]))
    form.add("call_id", uuid.UUID(entry["call_id"]).bytes if entry["call_id"] else None)
    form.add_integer("seq", entry["seq"])
    form.add_text("from_state", entry["from_state"])
    form.add_text("to_state", entry["to_state"])
    context = json.loads(names["context"]["text"] or "{}") if "context" in names else {}
    repeated = {key: value for key, value in entry["details"].items() if key in context}
    if canonical(repeated) != canonical(context):
        raise ValueError("the details say otherwise than the context that was sealed")
    for name, said in _name_contents(entry, names).items():
        form.add(name, _opened(names.get(name, {}), said))
    for name in ("arguments", "result"):
        digest = bytes.fromhex(entry[f"{name}_digest"])
        form.add(name, commitment_of(_salt(opening, name), digest) if digest else None)
    own = {key: value for key, value in entry["details"].items() if key not in context}
    form.add("details", _details(opening, own))
    return form.written


def _check_spelling(entry: Mapping[str, Any]) -> None:
    """The leaf has numbers and times, which could be written in more ways than one."""
    for name in ("id", "seq", "actor_id", "agent_id", "person_id"):
        if type(entry[name]) not in (int, type(None)):
            raise ValueError(f"{name} is no whole number")
    if entry["transaction"] != str(int(entry["transaction"])):
        raise ValueError("transaction is no whole number as text")
    if entry["at"] != moment(datetime.fromisoformat(entry["at"])):
        raise ValueError("a time reads YYYY-MM-DDTHH:MM:SS.ffffffZ")


def moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _alone(commitment: str) -> bytes:
    """Refuses other lengths, since such bytes could stand for several fields."""
    if len(raw := bytes.fromhex(commitment)) != HASH:
        raise ValueError(f"a commitment has {HASH} bytes")
    return raw


def _salt(opening: Mapping[str, Any], field: str) -> bytes:
    if "salt" in opening:
        return salt_of(bytes.fromhex(opening["salt"]), field)
    salt = bytes.fromhex(opening["salts"][field])
    if len(salt) != HASH:
        raise ValueError(f"the salt of a field has {HASH} bytes")
    return salt


def _details(opening: Mapping[str, Any], own: Mapping[str, Any]) -> bytes | None:
    """Commits to the details; of forgotten ones only the commitment is there, and no salt."""
    if "salt" in opening:
        return commitment_of(_salt(opening, "details"), canonical(own)) if own else None
    if own != DETAILS_FORGOTTEN:
        raise ValueError("the details were forgotten, and say something")
    return _alone(opening["salts"]["commitment"])


def _name_contents(
    entry: Mapping[str, Any], names: Mapping[str, Any]
) -> dict[str, tuple[Any, ...]]:
    """The content of each of the entry's names, as committed to, in the order of the fields."""
    return {
        "action": ("action", None, entry["action"]),
        "actor": _actor(entry, names),
        "agent": ("agent", entry["agent_id"], entry["agent"]),
        "person": ("person", entry["person_id"], entry["person"]),
        "tool": ("tool", None, entry["tool"], entry["server"], entry["definition_digest"]),
        "context": ("context", None, names.get("context", {}).get("text", "")),
        "reason": ("reason", None, entry["reason"]),
    }


def _actor(entry: Mapping[str, Any], names: Mapping[str, Any]) -> tuple[Any, ...]:
    """An entry without an actor of its own is what its agent did, which it says all the same."""
    actor = entry["actor_kind"], entry["actor_id"], entry["actor"]
    if "salt" in names.get("actor", {}):
        return actor
    kind = "agent" if "salt" in names.get("agent", {}) else ""
    agent = kind, entry["agent_id"], entry["agent"]
    if actor != (("", None, "") if names.get("actor") else agent):
        raise ValueError("the actor is not who the leaf commits to")
    return "", None, ""


def _opened(opening: Mapping[str, str], said: tuple[Any, ...]) -> bytes | None:
    """None of a name that the entry does not have; one that was forgotten has its commitment alone.
    Neither says anything."""
    if "salt" in opening:
        return commitment_of_name(bytes.fromhex(opening["salt"]), *said)
    kind, subject, *texts = said
    if subject is not None or any(texts):
        raise ValueError(f"the leaf commits to no such {kind}")
    return _alone(opening["commitment"]) if opening else None


def microseconds(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def leaf_of(line: Mapping[str, Any]) -> bytes:
    """The leaf of one line of an export."""
    if line["entry"].keys() != set(COLUMNS):
        raise ValueError(f"an entry says {', '.join(COLUMNS)}, and nothing else")
    match line.get("format", 1):
        case 1:
            # A longer one could be the beginning of a form 2, and the entry what stands in it.
            if len(salt := bytes.fromhex(line["salt"])) != SALT:
                raise ValueError(f"a salt has {SALT} bytes")
            return leaf_hash(salt, canonical(line["entry"]))
        case 2:
            return leaf_hash(b"", form_2(line["entry"], line))
        case other:
            raise ValueError(f"an entry of format {other}, which this verifier does not know")


class Peaks:
    """A tree that only grows, as the roots of its whole subtrees."""

    def __init__(self, size: int = 0, peaks: Iterable[bytes] = ()) -> None:
        self.size, self.peaks = size, list(peaks)

    def copy(self) -> Peaks:
        return Peaks(self.size, self.peaks)

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
        return root_of(self.peaks)


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
    """A key that signs checkpoints: `name+id+base64`, as in signed notes."""

    name: str
    public: bytes

    @property
    def id(self) -> bytes:
        text = self.name.encode() + b"\n" + ED25519 + self.public
        return hashlib.sha256(text).digest()[:4]

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(ED25519 + self.public).decode()}"

    def under(self, origin: int) -> Key:
        """The same, as it signs after `origin - 1` restores."""
        return self if origin == 1 else Key(f"{self.name}/{origin}", self.public)

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
class Trusted:
    """A key, and up to how many entries it signed: then another one took over."""

    key: Key
    until: int | None = None

    def __str__(self) -> str:
        return str(self.key) if self.until is None else f"{self.key} until {self.until}"

    @classmethod
    def parse(cls, line: str) -> Trusted:
        text, _, until = line.strip().partition(" until ")
        try:
            return cls(Key.parse(text), int(until) if until else None)
        except ValueError as error:
            raise Broken("A key reads name+id+base64, or that and “until SIZE”.") from error


@dataclass(frozen=True, slots=True)
class Root:
    """The content of a checkpoint."""

    size: int
    root: bytes
    time: str
    origin: int = 1


def checkpoint_text(key: Key, size: int, root: bytes, time: str) -> str:
    return f"{key.name}\n{size}\n{base64.b64encode(root).decode()}\ntime {time}\n"


def read_note(note: str, key: Key) -> Root:
    """Raises Broken unless `key` signed it, under any of its names."""
    text, _, signatures = note.partition("\n\n")
    text += "\n"
    origin = _origin(text, key)
    key = key.under(origin)
    if not any(_signed(line, text, key) for line in signatures.splitlines()):
        raise Broken("not signed by the given key")
    try:
        name, size, root, time, *_rest = text.splitlines()
        read = Root(int(size), base64.b64decode(root, validate=True), time[5:], origin)
    except ValueError as error:
        raise Broken("no checkpoint") from error
    if name != key.name or len(read.root) != 32:
        raise Broken("a checkpoint of something else")
    return read


def _origin(text: str, key: Key) -> int:
    number = text.partition("\n")[0].removeprefix(f"{key.name}/")
    return int(number) if number.isascii() and number.isdigit() and number[:1] != "0" else 1


def read_trusted(note: str, keys: Iterable[Trusted]) -> Root:
    """Raises Broken unless one of the keys signed it, in its time."""
    read, until = _read_by_any(note, keys)
    if until is not None:
        raise Broken(_replaced(until))
    return read


def _replaced(until: int) -> str:
    return f"signed by a key that another one replaced at {until} entries"


def read_known(note: str, keys: Iterable[Trusted]) -> Root:
    """Raises Broken unless one of the keys signed it, in its time or not: what a restore dropped
    may have been signed by a key that, of what was kept, signed less or nothing."""
    return _read_by_any(note, keys)[0]


def _read_by_any(note: str, keys: Iterable[Trusted]) -> tuple[Root, int | None]:
    """And the size at which another key had replaced the one that signed it, if it had."""
    why, late = Broken("not signed by the given key"), None
    for trusted in keys:
        try:
            read = read_note(note, trusted.key)
        except Broken as error:
            why = error if str(error) != "not signed by the given key" else why
            continue
        if trusted.until is None or read.size <= trusted.until:
            return read, None
        late = read, trusted.until
    if late is None:
        raise why
    return late


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
    """Signed notes of a file that has one after the other, each with all of its signatures."""
    head: list[str] = []
    signatures: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("— "):
            signatures.append(line)
            continue
        if signatures:
            yield "\n".join([*head, "", *signatures]).lstrip("\n") + "\n"
            head, signatures = [], []
        if line:
            head.append(line)


@dataclass(slots=True)
class Findings:
    """The number of checks, and what failed; the first failure tells most."""

    entries: int = 0
    checkpoints: int = 0
    anchors: int = 0
    size: int = 0
    wrong: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    # What a reader should know, and what is no wrong by itself.
    notes: list[str] = field(default_factory=list)

    def say(self, sentence: str) -> None:
        self.wrong.append(sentence)


@dataclass(frozen=True, slots=True)
class Restore:
    """The content of a `record.restored` entry: the new name of the record, how many leaves it
    kept, and the last checkpoint under each earlier name."""

    index: int
    origin: int
    kept: int
    ends: Mapping[int, Root]
    by: str
    at: str

    @classmethod
    def parse(cls, index: int, entry: Mapping[str, Any], keys: Sequence[Trusted]) -> Restore:
        """Raises Broken, ValueError, KeyError or TypeError when it is not one."""
        details = entry["details"]
        ends = [read_known(note, keys) for note in details["ends"]]
        origin, kept = int(details["origin"]), int(details["kept"])
        if kept > index or any(end.origin >= origin for end in ends):
            raise Broken("a restore that contradicts itself")
        by = str(entry["actor"])
        return cls(index, origin, kept, {end.origin: end for end in ends}, by, str(entry["at"]))


# An empty object's bytes, as PostgreSQL writes them.
EMPTY = "\\x7b7d"


class ArchivedCalls:
    """Compares the content of calls with the digests in their entries, which come before it."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.bounds = uuid.UUID(facts["first"]), uuid.UUID(facts["last"])
        self.expected, self.seen = int(facts["calls"]), 0
        # Of calls whose content is still to come: digests of arguments, and of results.
        self.open: dict[uuid.UUID, tuple[set[str], set[str]]] = {}
        self.wrong: list[str] = []
        self.erased = 0

    def note(self, entry: Mapping[str, Any]) -> None:
        """Remembers the digests of an entry of one of these calls."""
        if entry["call_id"] is None or entry["seq"] is None:
            return
        call = uuid.UUID(entry["call_id"])
        if self.bounds[0] <= call < self.bounds[1] and (entry["seq"] == 1 or call in self.open):
            asked, came = self.open.setdefault(call, (set(), set()))
            if entry["seq"] == 1:
                asked.add(entry["arguments_digest"])
            came.add(entry["result_digest"])

    def compare(self, line: Mapping[str, Any]) -> None:
        """A line with a call's content."""
        row, result = line["call"], line["result"]
        asked, came = self.open.pop(uuid.UUID(row["id"]), (set(), set()))
        self.seen += 1
        if "erased" in line:
            self.erased += 1
            if result or row["arguments"] != EMPTY:
                self.wrong.append(f"Call {row['id']} is erased, and its content is there.")
            return
        if _digest(row["arguments"]) not in asked:
            self.wrong.append(f"The arguments of call {row['id']} are not those of its entry.")
        if result and result["kept_until"] is None and _digest(result["body"]) not in came:
            self.wrong.append(f"The result of call {row['id']} is not that of its entry.")

    def findings(self) -> Iterator[str]:
        yield from self.wrong
        yield from (f"Call {call} is not in this archive: its entry is." for call in self.open)
        if self.seen != self.expected:
            yield f"{self.seen} calls are in this archive, and it says {self.expected}."


def _digest(written: str) -> str:
    """SHA-256 of bytes as PostgreSQL writes them."""
    return hashlib.sha256(bytes.fromhex(written.removeprefix("\\x"))).hexdigest()


class Check:
    """Fed with leaves in order, compares the tree with what was signed on the way."""

    def __init__(self, keys: Sequence[Trusted], anchors: Iterable[str] = ()) -> None:
        self.keys, self.found = keys, Findings()
        self.tree = Peaks()
        self.roots: dict[int, bytes] = {}
        self.signed: list[tuple[str, Root]] = []
        # Signed by a key that another one had replaced: no wrong only where a restore dropped it.
        self.late: list[tuple[str, Root, str]] = []
        self.proven: dict[int, bytes] = {}
        self.restores: list[Restore] = []
        # Commitments that stand alone → an entry that has one; and those that an entry names.
        self.forgotten: dict[str, Any] = {}
        self.declared: set[str] = set()
        # Of an archive: where it begins, and digests of calls whose content is still to come.
        self.first, self.first_origin = 0, 1
        self.archived: ArchivedCalls | None = None
        if any(trusted.key.name.startswith(DEMO) for trusted in keys):
            self.found.notes.append(DEMO_NOTE)
        for note in anchors:
            self.found.anchors += self._read(note, "an anchor", "an anchor")

    def checkpoint(self, note: str) -> None:
        number = self.found.checkpoints + 1
        self.found.checkpoints += self._read(note, "a checkpoint", f"checkpoint {number}")

    def trust(self, size: int) -> None:
        """Drops checkpoints of smaller trees, which were compared before."""
        self.signed = [one for one in self.signed if one[1].size >= size]
        self.late = [one for one in self.late if one[1].size >= size]

    def begin(self, line: Mapping[str, Any]) -> None:
        """At the first line of an archive: a part of the record, with its calls."""
        peaks = [bytes.fromhex(peak) for peak in line["peaks"]]
        self.first, self.first_origin = int(line["start"]), int(line["origin"])
        if len(peaks) != self.first.bit_count() or any(len(peak) != HASH for peak in peaks):
            raise ValueError("these are not the roots of the tree before it")
        self.tree = Peaks(self.first, peaks)
        self.archived = ArchivedCalls(line["archive"])

    def expect(self) -> None:
        """After checkpoints, before leaves: which roots to remember."""
        self.signed = [one for one in self.signed if self._is_of_this_part(one[1])]
        self.late = [one for one in self.late if self._is_of_this_part(one[1])]
        self.wanted = {read.size for _, read in self.signed}
        self.roots[self.first] = self.tree.root()

    def _is_of_this_part(self, read: Root) -> bool:
        return read.size >= self.first and read.origin >= self.first_origin

    def leaf(self, index: int, leaf: bytes) -> None:
        if index != self.tree.size:
            self.found.say(
                f"Leaf {self.tree.size} is missing: after {self.tree.size - 1} comes {index}."
            )
        for _ in self.tree.append(leaf):
            pass
        if self.tree.size in self.wanted:
            self.roots[self.tree.size] = self.tree.root()

    def restore(self, index: int, entry: Mapping[str, Any]) -> None:
        """The entry of leaf `index` declares one."""
        try:
            read = Restore.parse(index, entry, self.keys)
        except (Broken, ValueError, KeyError, TypeError) as error:
            self.found.say(
                f"Entry {entry.get('id')} declares no restore that can be read: {error}."
            )
            return
        self.restores.append(read)

    def open_entry(self, line: Mapping[str, Any]) -> None:
        """Collects forgotten fields, and the commitments that entries declare forgotten."""
        entry = line["entry"]
        for commitment in _forgotten(line):
            self.forgotten.setdefault(commitment, entry.get("id"))
        if entry.get("action") == FORGOTTEN:
            self.declared.update(entry["details"].get("commitments", ()))
        if self.archived:
            self.archived.note(entry)

    def note_alone(self) -> None:
        """Notes that part of an export cannot show what the other entries declare."""
        if self.forgotten:
            self.found.notes.append(
                f"{len(self.forgotten)} names or details are not said. Whether they were "
                "forgotten, or left out of this file, the whole record knows."
            )

    def compare_archived(self) -> None:
        """Finds calls of an archive whose content is missing or differs from the sealed one."""
        if self.archived:
            self.note_alone()
            for sentence in self.archived.findings():
                self.found.say(sentence)
            if self.archived.erased:
                self.found.notes.append(
                    f"The payloads of {self.archived.erased} calls were erased: the entries hold."
                )
        else:
            self.compare_forgotten()

    def compare_forgotten(self) -> None:
        for commitment, pk in self.forgotten.items():
            if commitment not in self.declared:
                self.found.say(
                    f"Entry {pk} says less than was sealed, and no entry says that it was "
                    "forgotten."
                )
        if self.forgotten:
            self.found.notes.append(
                f"{len(self.forgotten)} names or details were forgotten: the entries that had them "
                "hold, and do not say them."
            )

    def compare(self) -> None:
        good = self.first
        self.found.size = self.tree.size
        signed = max((read.size for _, read in self.signed), default=0)
        if self.signed and signed < self.tree.size:
            self.found.say(
                f"Leaves {signed} to {self.tree.size - 1} are outside the tree: no checkpoint "
                "signed them."
            )
        current = max((one.origin for one in self.restores), default=self.first_origin)
        for what, read in sorted(self.signed, key=lambda one: one[1].size):
            if read.origin > current:
                name = self.keys[-1].key.under(read.origin).name
                self.found.say(
                    f"Cut off: {what} of {read.time} is of {name}, which the record does not "
                    "declare."
                )
            elif read.origin < current and read.size > self._kept(read.origin):
                self._compare_dropped(what, read)
            elif read.size > self.tree.size:
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
        self._compare_late(current)
        for restore in self.restores:
            self._say_restored(restore)

    def _compare_late(self, current: int) -> None:
        for what, read, why in self.late:
            if read.origin < current and read.size > self._kept(read.origin):
                self._compare_dropped(what, read)
            else:
                self.found.say(why)

    def say_late(self) -> None:
        """Findings on part of an export, without its restores: an older name may be of entries that
        were dropped."""
        current = max((read.origin for _, read in self.signed), default=1)
        for _, read, why in self.late:
            if read.origin >= current:
                self.found.say(why)

    def _compare_dropped(self, what: str, read: Root) -> None:
        """It speaks of leaves that a restore dropped: of no more than the restore declares?"""
        last = self.restores[-1].ends.get(read.origin)
        if last is None or read.size > last.size:
            known = f"{last.size}" if last else "none"
            self.found.say(
                f"Cut off: {what} of {read.time} speaks of {read.size} entries, and the restore of "
                f"{self.restores[-1].at} declares {known}."
            )
        elif read.size == last.size and read.root != last.root:
            self.found.say(f"{what} of {read.time} is not what the restore declares.".capitalize())

    def _say_restored(self, restore: Restore) -> None:
        if not any(
            read.origin >= restore.origin and read.size > restore.index for _, read in self.signed
        ):
            self.found.say(f"The restore that leaf {restore.index} declares is not signed.")
        last = restore.ends.get(max(restore.ends, default=0))
        if last is not None and last.size > restore.kept:
            what = f"entries {restore.kept} to {last.size - 1} dropped"
        else:
            what = "no sealed entry dropped"
        self.found.restored.append(f"Restored: {what}, by {restore.by}, at {restore.at}.")

    def _kept(self, origin: int) -> int:
        """How many leaves of an earlier name are still there."""
        return min(restore.kept for restore in self.restores if restore.origin > origin)

    def _read(self, note: str, kind: str, what: str) -> bool:
        try:
            read, until = _read_by_any(note, self.keys)
        except Broken as error:
            self.found.say(f"{what}: {error}.".capitalize())
            return False
        if until is None:
            self.signed.append((kind, read))
        else:
            self.late.append((kind, read, f"{what}: {_replaced(until)}.".capitalize()))
        return True


def check_export(
    lines: Iterable[str], keys: Sequence[Trusted], anchors: Sequence[str] = ()
) -> Findings:
    """A file of the whole record (checkpoints first), or of some entries with their paths."""
    check = Check(keys, anchors)
    expected = False
    for number, text in enumerate(lines, start=1):
        try:
            line = json.loads(text, object_pairs_hook=_distinct)
            if line.keys() not in (CHECKPOINT, ARCHIVE, CALL, ERASED) and not line.keys() <= LINE:
                raise ValueError(f"a line has {', '.join(sorted(LINE))}, and nothing else")
            if "archive" in line:
                if number > 1:
                    raise ValueError("an archive begins with its first line")
                check.begin(line)
                continue
            if "call" in line:
                if not check.archived:
                    raise ValueError("only archives have the content of calls")
                check.archived.compare(line)
                continue
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
    if check.proven:
        check.say_late()
        check.note_alone()
    else:
        check.compare()
        check.compare_archived()
    return check.found


def _distinct(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers could take two members of one name for different things."""
    made = dict(members)
    if len(made) != len(members):
        raise ValueError("a member stands there twice")
    return made


def _forgotten(line: Mapping[str, Any]) -> Iterator[str]:
    for opening in line.get("names", {}).values():
        if "commitment" in opening:
            yield str(opening["commitment"])
    if "salts" in line:
        yield str(line["salts"]["commitment"])


def _check_missing(check: Check, line: Mapping[str, Any]) -> None:
    """Its leaf alone was exported: the tree can be built, and the entry is missing."""
    index = int(line["index"])
    check.leaf(index, bytes.fromhex(line["hash"]))
    check.found.say(f"Entry {line['gone']} is gone: its leaf {index} is still there.")


def _entry(check: Check, line: Mapping[str, Any], number: int) -> None:
    if check.proven if "path" not in line else check.tree.size:
        # The tree is compared as a whole, or each entry by its path.
        raise ValueError("entries with paths and a whole record are two files")
    if line["entry"] is None:
        _check_missing(check, line)
        return
    check.found.entries += 1
    leaf, index = leaf_of(line), int(line["index"])
    if "path" not in line:
        check.leaf(index, leaf)
        check.open_entry(line)
        if line["entry"].get("action") == RESTORED:
            check.restore(index, line["entry"])
        return
    path = [bytes.fromhex(sibling) for sibling in line["path"]]
    sizes: dict[int, set[bytes]] = {}
    for _, read in check.signed:
        sizes.setdefault(read.size, set()).add(read.root)
    size = int(line["size"])
    check.proven[index] = leaf
    for commitment in _forgotten(line):
        check.forgotten.setdefault(commitment, line["entry"].get("id"))
    if size not in sizes:
        check.found.say(f"Line {number}: no signed checkpoint of {size} entries is there.")
    elif root_by_path(index, size, leaf, path) not in sizes[size]:
        check.found.say(
            f"Line {number}: entry {line['entry'].get('id')} is not what was signed (leaf {index})."
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check exported entries offline.")
    parser.add_argument("export", type=Path)
    parser.add_argument(
        "--key", required=True, action="append", help="name+id+base64, or a file of such lines"
    )
    parser.add_argument("--anchor", type=Path, action="append", default=[])
    given = parser.parse_args(arguments)
    try:
        keys = [key for text in given.key for key in _keys(text)]
        anchors = [note for path in given.anchor for note in notes(path.read_text())]
        with given.export.open() as file:
            found = check_export(file, keys, anchors)
    except (Broken, OSError) as error:
        return _say(2, str(error))
    for sentence in found.wrong:
        _say(1, sentence)
    if found.wrong:
        return 1
    if not found.checkpoints + found.anchors:
        return _say(2, "Nothing signed was there to compare with.")
    kept = f" and {found.anchors} anchors" if found.anchors else ""
    for sentence in found.restored:
        _say(3, sentence)
    for sentence in found.notes:
        _say(0, sentence)
    said = f"{found.entries} entries hold, by {found.checkpoints} checkpoints{kept}."
    _say(0, said)
    return 3 if found.restored else 0


def _keys(given: str) -> list[Trusted]:
    text = Path(given).read_text() if Path(given).is_file() else given
    return [Trusted.parse(line) for line in text.splitlines() if line.strip()]


def _say(code: int, sentence: str) -> int:
    (sys.stderr if code else sys.stdout).write(sentence + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
