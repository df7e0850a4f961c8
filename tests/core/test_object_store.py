"""Files in a store that speaks like S3: its signatures, and files of several parts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core import object_store
from core.aws_signature import AccessKey, sign
from core.object_store import StoredFile, StoreFailed
from tests.config.store import ACCESS_KEY, REGION, SECRET_KEY, Store

# Of the examples in AWS's documentation of Signature Version 4.
KEY = AccessKey("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")
AT = datetime(2013, 5, 24, tzinfo=UTC)
HOST = {"Host": "examplebucket.s3.amazonaws.com"}
PART = 5


@pytest.fixture
def store(settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(object_store, "PART_BYTES", PART)
    with Store() as store:
        settings.ARCHIVE_URL = f"http://127.0.0.1:{store.port}"
        settings.ARCHIVE_ACCESS_KEY, settings.ARCHIVE_SECRET_KEY = ACCESS_KEY, SECRET_KEY
        settings.ARCHIVE_REGION = REGION
        settings.UPSTREAM_NETWORKS = ["127.0.0.0/8"]
        yield store


@pytest.mark.parametrize(
    ("path", "query", "headers", "signature"),
    [
        (
            "/test.txt",
            {},
            {**HOST, "Range": "bytes=0-9"},
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            "/",
            {"lifecycle": ""},
            HOST,
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            "/",
            {"max-keys": "2", "prefix": "J"},
            HOST,
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
)
def test_it_signs_as_the_documentation_does(
    path: str, query: dict[str, str], headers: dict[str, str], signature: str
) -> None:
    signed = sign(KEY, "GET", path, query, headers, b"", at=AT)

    assert signed["Authorization"].endswith(f"Signature={signature}")


@pytest.mark.parametrize("content", [b"", b"1234", b"12345", b"1234567890", b"12345678901"])
def test_what_is_put_there_in_parts_comes_back(
    content: bytes, store: Store, tmp_path: Path
) -> None:
    file, target = tmp_path / "file", tmp_path / "target"
    file.write_bytes(content)
    place = StoredFile.parse("s3://bucket/some/where").below("file")

    object_store.put(file, place)

    assert store.files == {"/bucket/some/where/file": content}
    assert store.asked["PUT"] == max(1, -(-len(content) // PART))
    with target.open("wb") as written:
        object_store.get(place, written)
    assert target.read_bytes() == content
    with pytest.raises(FileExistsError):
        object_store.put(file, place)


@pytest.mark.parametrize(
    "place", ["s3://", "s3://b", "s3://UPPER/x", "s3://bucket/x?y", "s3://bucket/ä", "s3:/b/c"]
)
def test_what_is_no_place_is_explained(place: str) -> None:
    with pytest.raises(StoreFailed, match="is no place in a store"):
        StoredFile.parse(place)


def test_the_secret_is_not_shown() -> None:
    assert KEY.secret not in repr(KEY)
