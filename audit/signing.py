"""Keys that sign checkpoints: the sealer alone is given one, everybody can read the public ones."""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from django.db import transaction

from audit import origins
from audit.models import Checkpoint, Secret, Signer
from audit.verify import Key, Trusted
from core import seal
from core.private_files import create_once


class CannotSign(Exception):
    """Said to whoever runs the sealer as it is."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    private: Ed25519PrivateKey
    name: str

    @property
    def key(self) -> Key:
        return Key(
            self.name, self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        )

    def sign(self, text: str, *, origin: int = 1) -> str:
        """The signature as a line of a signed note."""
        key = self.key.under(origin)
        signature = b64encode(key.id + self.private.sign(text.encode())).decode()
        return f"— {key.name} {signature}\n"


def keys() -> list[Trusted]:
    """Every key that ever signed here, with the size up to which it did; the newest last.

    After a restore another key may begin below the size at which one before it began."""
    found: dict[Key, Trusted] = {}
    until: int | None = None
    for signer in Signer.objects.order_by("-id"):
        key = _key_of(signer)
        found.setdefault(key, Trusted(key, until))
        until = signer.first_size if until is None else min(until, signer.first_size)
    return list(found.values())[::-1]


def known_signers() -> list[list[Any]]:
    """All signers as plain values, for `carry_over`."""
    return [
        [
            b64encode(bytes(one.public)).decode(),
            one.first_size,
            one.from_secret,
            one.at.isoformat(),
            one.name,
        ]
        for one in Signer.objects.order_by("id")
    ]


def carry_over(signers: Iterable[Sequence[Any]]) -> None:
    """Into a database that went back in time: keys that signed since then, as the owner."""
    present = {tuple(one[:2]) for one in known_signers()}
    for public, first_size, from_secret, at, *name in signers:
        if (public, first_size) not in present:
            Signer.objects.create(
                public=b64decode(public),
                first_size=first_size,
                from_secret=from_secret,
                # Of backups from before the column.
                name=name[0] if name else origins.name(),
                at=datetime.fromisoformat(at),
            )


def public_key() -> Key:
    """The public key of the current signer. Raises CannotSign when nobody has signed yet."""
    known = keys()
    if not known:
        raise CannotSign("Nothing was sealed yet, so no key has signed.")
    return known[-1].key


def key_from_secret() -> SigningKey:
    """The key of records that workers sealed: derived from the installation's secret."""
    return SigningKey(
        Ed25519PrivateKey.from_private_bytes(seal.key("audit checkpoints")), origins.name()
    )


def adopt_old_key() -> None:
    """Makes the sealer the next signer of a record that workers sealed, with a key of its own."""
    signed = Checkpoint.objects.order_by("id").first()
    if signed and not Signer.objects.exists():
        Signer.objects.using("owner").create(
            public=key_from_secret().key.public,
            name=signed.note.partition("\n")[0],
            first_size=0,
            from_secret=True,
        )


def any_key() -> SigningKey:
    """Signs nothing that anybody knows: stands in until a rotation has made one."""
    return SigningKey(Ed25519PrivateKey.generate(), origins.name())


def note_secret() -> None:
    """Notes the fingerprint of a secret that is new to this database; as the database's owner."""
    if not Secret.objects.exists():
        Secret.objects.using("owner").create(fingerprint=seal.fingerprint())


def _key_of(signer: Signer) -> Key:
    return Key(signer.name, bytes(signer.public))


def open_key(size: int, *, replace: bool = False) -> SigningKey:
    """The sealer's own. The first time, or to replace another, it is noted as the one that signs
    from `size` on. Raises CannotSign."""
    path: Path | None = settings.SEAL_KEY_FILE
    if path is None:
        raise CannotSign("Only the sealer signs: COUNTERSIGN_SEAL_KEY_FILE names its key.")
    newest = Signer.objects.order_by("-id").first()
    _finish_rotation(path, newest)
    if not path.exists():
        if newest is not None and not newest.from_secret and not replace:
            raise CannotSign(
                f"The key that signs the record, {_key_of(newest)}, is not in "
                f"{path}: put it back, or let another sign from now on: audit_rotate_key."
            )
        write_key(path)
    signing = read_key(path)
    if newest is not None and bytes(newest.public) == signing.key.public:
        is_dropped = replace and newest.first_size > size
        if is_dropped or newest.name != signing.name:
            # It began to sign what a restore dropped; those before it sign nothing more. Or the
            # record goes on under another name, as one of format 1 did when it was upgraded.
            _note(signing, size)
        return signing
    if newest is not None and not newest.from_secret and not replace:
        raise CannotSign(
            f"The record is signed by {_key_of(newest)}, and {path} holds "
            f"{signing.key}: put the right file there, or let this one sign from now on: "
            "audit_rotate_key."
        )
    _note(signing, size)
    return signing


def _note(signing: SigningKey, size: int) -> None:
    """Notes that the key signs from `size` on."""
    Signer.objects.create(public=signing.key.public, name=signing.name, first_size=size)


def held_key() -> SigningKey | None:
    """The one that signs now, unless it was lost."""
    path: Path | None = settings.SEAL_KEY_FILE
    newest = Signer.objects.order_by("-id").first()
    if path is None or newest is None:
        return None
    _finish_rotation(path, newest)
    try:
        signing = read_key(path)
    except CannotSign:
        return None
    return signing if signing.key.public == bytes(newest.public) else None


def rotate(size: int) -> SigningKey:
    """Another key signs from `size` on; in the caller's transaction. Once that is committed, the
    key's file is replaced, by `_finish_rotation` at the latest."""
    path: Path | None = settings.SEAL_KEY_FILE
    if path is None:
        raise CannotSign("Only the sealer signs: COUNTERSIGN_SEAL_KEY_FILE names its key.")
    _next(path).unlink(missing_ok=True)
    write_key(_next(path))
    signing = read_key(_next(path))
    _note(signing, size)
    transaction.on_commit(partial(os.replace, _next(path), path))
    return signing


def _finish_rotation(path: Path, newest: Signer | None) -> None:
    """It broke off between the commit and the file."""
    following = _next(path)
    if newest is None or not following.exists():
        return
    if read_key(following).key.public == bytes(newest.public):
        following.replace(path)


def _next(path: Path) -> Path:
    return path.with_name(f"{path.name}.next")


def write_key(path: Path) -> None:
    create_once(path, b64encode(Ed25519PrivateKey.generate().private_bytes_raw()).decode() + "\n")


def read_key(path: Path) -> SigningKey:
    try:
        raw = b64decode(path.read_text().strip(), validate=True)
        return SigningKey(Ed25519PrivateKey.from_private_bytes(raw), origins.name())
    except (OSError, ValueError) as error:
        raise CannotSign(f"{path} cannot be read as a key: {error}") from error
