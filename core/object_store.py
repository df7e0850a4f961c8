"""Files in a store that speaks like S3: put there in parts, read back in parts, never replaced."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.conf import settings
from django.utils import timezone
from yarl import URL

from core.aws_signature import AccessKey, query_string, sign
from core.errors import CountersignError
from core.guarded_http import PlainReply, RequestFailed, WebLimits, fetch

SCHEME = "s3://"
# Every part but the last has at least 5 MiB; a file has at most 10,000 parts.
PART_BYTES = 64 * 1024 * 1024
# A part at 1 Mbit/s; while it is sent, nothing comes.
LIMITS = WebLimits(idle_s=600, total_s=600, max_bytes=PART_BYTES + 1024)
_PLACE = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([A-Za-z0-9._/-]*))?")
_UPLOAD = re.compile(rb"<UploadId>([^<>]+)</UploadId>")
_CODE = re.compile(rb"<Code>([A-Za-z0-9]{1,80})</Code>")
# Nothing is there, or nothing of this range: it is empty.
_ABSENT, _EMPTY = 404, 416


class StoreFailed(CountersignError):
    """Says why; the file may be there in part, and is not complete."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    bucket: str
    key: str

    @classmethod
    def parse(cls, text: str) -> StoredFile:
        """Raises StoreFailed unless it reads s3://BUCKET/KEY, with characters that every store
        takes."""
        found = _PLACE.fullmatch(text)
        if found is None:
            raise StoreFailed(
                f"{text} is no place in a store: write s3://BUCKET/PATH with letters, digits, "
                "dots, dashes and underscores."
            )
        return cls(found[1], (found[2] or "").strip("/"))

    def below(self, name: str) -> StoredFile:
        return StoredFile(self.bucket, f"{self.key}/{name}" if self.key else name)

    @property
    def path(self) -> str:
        return f"/{self.bucket}/{self.key}"

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.key}"


def is_place(text: str) -> bool:
    return text.startswith(SCHEME)


def exists(file: StoredFile) -> bool:
    return _piece(file, 0, 1) is not None


def put(source: Path, file: StoredFile) -> None:
    """Uploads, reads it back and compares. Raises StoreFailed, or FileExistsError."""
    if exists(file):
        raise FileExistsError(str(file))
    _upload(source, file)
    with source.open("rb") as content:
        sent = hashlib.file_digest(content, "sha256").hexdigest()
    received = hashlib.sha256()
    for piece in _pieces(file):
        received.update(piece)
    if received.hexdigest() != sent:
        raise StoreFailed(f"{file} is not what was sent: its content differs.")


def get(file: StoredFile, target: IO[bytes]) -> None:
    """Raises StoreFailed."""
    for piece in _pieces(file):
        target.write(piece)


def _upload(source: Path, file: StoredFile) -> None:
    begun = _UPLOAD.search(_ask("POST", file, {"uploads": ""}).body)
    if begun is None:
        raise StoreFailed(f"{file}: the store began no upload.")
    upload = {"uploadId": begun[1].decode()}
    try:
        parts = list(_sent_parts(source, file, upload))
        # A store that knows this header never puts it over another file that came meanwhile.
        done = _ask("POST", file, upload, _list_of(parts), {"If-None-Match": "*"})
        # Its status is sent before it is done.
        if b"<Error>" in done.body:
            raise _failed(file, done)
    except BaseException:
        # Parts of an upload are kept, and paid for, until they are removed.
        with suppress(StoreFailed):
            _send("DELETE", file, upload)
        raise


def _sent_parts(source: Path, file: StoredFile, upload: Mapping[str, str]) -> Iterator[str]:
    with source.open("rb") as content:
        number = 1
        while (part := content.read(PART_BYTES)) or number == 1:
            reply = _ask("PUT", file, {**upload, "partNumber": str(number)}, part)
            tag = reply.headers.get(b"etag")
            if not re.fullmatch(r'"?[A-Za-z0-9+/=_-]{1,200}"?', tag):
                raise StoreFailed(f"{file}: the store named part {number} by nothing.")
            yield tag
            number += 1


def _list_of(tags: list[str]) -> bytes:
    parts = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
        for number, tag in enumerate(tags, 1)
    )
    return f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()


def _pieces(file: StoredFile) -> Iterator[bytes]:
    start = 0
    # The piece beyond the end is empty.
    while piece := _piece(file, start, PART_BYTES):
        yield piece
        start += len(piece)
    if piece is None:
        raise StoreFailed(f"{file} is not there.")


def _piece(file: StoredFile, start: int, size: int) -> bytes | None:
    """None if there is no such file; empty beyond its end."""
    reply = _send("GET", file, {}, b"", {"Range": f"bytes={start}-{start + size - 1}"})
    if reply.status == _ABSENT:
        return None
    if reply.status == _EMPTY:
        return b""
    if reply.status != 206:
        raise _failed(file, reply)
    return reply.body


def _ask(
    method: str,
    file: StoredFile,
    query: Mapping[str, str],
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> PlainReply:
    """Raises StoreFailed unless it was done."""
    reply = _send(method, file, query, body, headers)
    if reply.status == 412:
        raise FileExistsError(str(file))
    if reply.status != 200:
        raise _failed(file, reply)
    return reply


def _send(
    method: str,
    file: StoredFile,
    query: Mapping[str, str],
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> PlainReply:
    base, given = settings.ARCHIVE_URL, dict(headers or {})
    to_sign = {"host": URL(base).host_port_subcomponent or "", **given}
    added = sign(_key(), method, file.path, query, to_sign, body, at=timezone.now())
    url = f"{base}{file.path}?{query_string(query)}" if query else f"{base}{file.path}"
    try:
        return fetch(method, url, {**given, **added, "Accept": "*/*"}, body, limits=LIMITS)
    except RequestFailed as error:
        raise StoreFailed(f"{file}: {error}") from error


def _key() -> AccessKey:
    access_key, secret = settings.ARCHIVE_ACCESS_KEY, settings.ARCHIVE_SECRET_KEY
    if not (settings.ARCHIVE_URL and access_key and secret):
        raise StoreFailed(
            "Set COUNTERSIGN_ARCHIVE_URL, COUNTERSIGN_ARCHIVE_ACCESS_KEY and "
            "COUNTERSIGN_ARCHIVE_SECRET_KEY."
        )
    return AccessKey(access_key, secret, settings.ARCHIVE_REGION)


def _failed(file: StoredFile, reply: PlainReply) -> StoreFailed:
    code = _CODE.search(reply.body)
    why = f" {code[1].decode()}" if code else ""
    return StoreFailed(f"{file}: the store answered {reply.status}{why}.")
