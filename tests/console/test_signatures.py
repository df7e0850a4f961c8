"""A Sigstore bundle about a server.json or its package is verified, shown and recorded."""

from __future__ import annotations

import html
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from registry.models import Server, ServerOrigin
from registry.server_json import bundle_reader, importing, signatures
from registry.server_json.document import ServerJsonRefused
from registry.server_json.signatures import SignatureRefused
from tests.console import scenery
from tests.console.test_server_imports import (
    DIGEST,
    HERE,
    Json,
    package,
    register,
    server_json,
)
from tests.upstreams.sigstore import SIGNED_AT, SLSA, WORKFLOW, TestSigstore

pytestmark = pytest.mark.django_db(transaction=True)
PINNED = f"sha256:{DIGEST}"
FILE = json.dumps(server_json(), indent=2).encode() + b"\n"
WITH_PACKAGE = json.dumps(server_json(packages=[package()]), indent=2).encode()
VALUES = {"input0": "us", "input1": "hush", "input2": ""}


@pytest.fixture
def sigstore(settings: Any, tmp_path: Path) -> TestSigstore:
    made = TestSigstore()
    root = tmp_path / "trusted_root.json"
    root.write_bytes(made.trusted_root())
    settings.SIGSTORE_TRUSTED_ROOT = str(root)
    return made


@pytest.fixture
def command(settings: Any, tmp_path: Path) -> None:
    settings.STDIO_CATALOGUE = tmp_path / "stdio.json"
    argv = ["/usr/bin/npx", "-y", "@ana/weather@1.2.3"]
    settings.STDIO_CATALOGUE.write_text(json.dumps({"weather": {"argv": argv}}))


def upload(client: Client, bundle: bytes, file: bytes = FILE) -> str:
    given = {
        "step": "read",
        "document_file": SimpleUploadedFile("server.json", file),
        "bundle_file": SimpleUploadedFile("server.json.sigstore.json", bundle),
    }
    return html.unescape(client.post(HERE, given).text)


def sign_later(client: Client, bundle: bytes, file: bytes | None = None) -> Any:
    given = {"bundle_file": SimpleUploadedFile("b.sigstore.json", bundle)}
    if file is not None:
        given["document_file"] = SimpleUploadedFile("server.json", file)
    return client.post(reverse("registry:server_signature", args=["weather"]), given)


def remove(client: Client) -> Any:
    return client.post(reverse("registry:remove_signature", args=["weather"]))


def page_of(client: Client) -> str:
    return html.unescape(client.get(reverse("registry:server", args=["weather"])).text)


def imported(olga: User, file: bytes = FILE) -> ServerOrigin:
    given = importing.read_pasted(file)
    values = {"region": "us", "X-Api-Key": "hush"}
    importing.register_remote(
        "weather", given, given.server.remotes[0], values, owner=olga, by=olga
    )
    return ServerOrigin.objects.get()


# At the import


def test_a_signed_file_is_shown_with_its_signer(as_olga: Client, sigstore: TestSigstore) -> None:
    page = upload(as_olga, sigstore.sign(FILE))
    assert WORKFLOW in page

    register(as_olga, page, **VALUES)

    digest = signatures.digest_of(FILE)
    shown = page_of(as_olga)
    assert WORKFLOW in shown
    assert "https://token.actions.githubusercontent.com" in shown
    assert "A workflow of the publisher's GitHub account signed it." in shown
    assert f'It signs the server.json as a file: <span class="mono">{digest}' in shown
    entry = Entry.objects.get(action="server.signature_verified")
    assert entry.actor == "olga"
    assert entry.details["identity"] == WORKFLOW
    assert entry.details["digest"] == digest


@pytest.mark.long
def test_a_pasted_file_is_the_same_bytes(as_olga: Client, sigstore: TestSigstore) -> None:
    """Browsers send its lines with CRLF."""
    pasted = FILE.decode().replace("\n", "\r\n")
    bundle = SimpleUploadedFile("b.sigstore.json", sigstore.sign(FILE))

    answer = as_olga.post(HERE, {"step": "read", "document": pasted, "bundle_file": bundle})

    assert WORKFLOW in html.unescape(answer.text)


@pytest.mark.long
def test_a_bundle_of_another_file_is_an_error_and_nothing_is_read(
    as_olga: Client,
    sigstore: TestSigstore,
) -> None:
    page = upload(as_olga, sigstore.sign(FILE + b" "))

    assert "The signature does not verify: Bundle message digest mismatch" in page
    assert 'name="sealed"' not in page


@pytest.mark.long
@pytest.mark.usefixtures("command")
def test_provenance_of_the_package_counts_where_it_is_run(
    as_olga: Client,
    sigstore: TestSigstore,
) -> None:
    page = upload(as_olga, sigstore.attest(PINNED), WITH_PACKAGE)

    answer = register(as_olga, page, **VALUES)
    assert "about another package" in html.unescape(answer.text)
    assert not Server.objects.exists()
    assert not Entry.objects.filter(action="server.signature_verified").exists()

    register(as_olga, page, "package0", command="weather")
    shown = page_of(as_olga)
    assert f'It signs the package, by its digest: <span class="mono">{PINNED}' in shown
    assert SLSA in shown


def test_nobody_puts_a_signature_into_a_form(as_olga: Client) -> None:
    with pytest.raises(ServerJsonRefused):
        importing.open_sealed(importing.read_pasted(FILE).sealed() + "x")


# Later


@pytest.mark.long
def test_a_bundle_can_be_given_later(
    as_olga: Client,
    olga: User,
    sigstore: TestSigstore,
) -> None:
    imported(olga)
    assert "None was given." in page_of(as_olga)
    who = {"identity": "ana@example.com", "issuer": "https://accounts.google.com"}

    answer = sign_later(as_olga, sigstore.sign(FILE, **who), FILE)

    assert answer.url == reverse("registry:server", args=["weather"])
    shown = page_of(as_olga)
    assert "ana@example.com" in shown
    assert "Whether the signer is the publisher is for you to judge." in shown


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "said"),
    [
        (None, "Give the server.json as the file that was signed."),
        (json.dumps(server_json(version="6.6.6")).encode(), "differs from the server.json"),
        (b"{", "not JSON"),
    ],
)
def test_later_the_file_must_be_the_one_that_was_imported(
    as_olga: Client,
    olga: User,
    sigstore: TestSigstore,
    file: bytes | None,
    said: str,
) -> None:
    origin = imported(olga)

    answer = sign_later(as_olga, sigstore.sign(file or FILE), file)

    assert said in html.unescape(answer.text)
    origin.refresh_from_db()
    assert origin.signature is None


@pytest.mark.long
def test_at_another_address_it_is_not_shown_as_if_it_were_about_it(
    as_olga: Client,
    olga: User,
    sigstore: TestSigstore,
) -> None:
    origin = imported(olga)
    importing.add_signature(origin, sigstore.sign(FILE), FILE, by=olga)
    Server.objects.update(url="https://elsewhere.example.com/mcp")

    shown = page_of(as_olga)

    assert WORKFLOW not in shown
    assert "One was verified at another address" in shown
    with pytest.raises(SignatureRefused, match="another address"):
        importing.add_signature(ServerOrigin.objects.get(), sigstore.sign(FILE), FILE, by=olga)


def test_one_of_another_document_is_not_current(olga: User) -> None:
    origin = imported(olga)
    origin.signature = {"of": "sha256:other", "identity": WORKFLOW, "issuer": ""}

    assert origin.current_signature is None
    assert not origin.is_signed_by_publisher


def test_only_operators_of_the_server_give_or_remove_one(client: Client, olga: User) -> None:
    imported(olga)
    client.force_login(scenery.person("vera", Role.VIEWER))

    assert sign_later(client, b"{}").status_code == 403
    assert remove(client).status_code == 403
    assert "Verify a Sigstore bundle" not in page_of(client)


@pytest.mark.long
def test_a_signature_can_be_removed(as_olga: Client, olga: User, sigstore: TestSigstore) -> None:
    importing.add_signature(imported(olga), sigstore.sign(FILE), FILE, by=olga)
    where = reverse("registry:server_signature", args=["weather"])
    assert "Remove the signature" in as_olga.get(where).text

    assert remove(as_olga).url == reverse("registry:server", args=["weather"])

    assert WORKFLOW not in page_of(as_olga)
    assert "Remove the signature" not in as_olga.get(where).text
    entry = Entry.objects.get(action="server.signature_removed")
    assert (entry.actor, entry.server, entry.details["identity"]) == ("olga", "weather", WORKFLOW)


def test_removing_none_is_no_entry(as_olga: Client, olga: User) -> None:
    imported(olga)

    assert remove(as_olga).status_code == 302

    assert not Entry.objects.filter(action="server.signature_removed").exists()


# What does not verify


def read(bundle: bytes, settings: Any, file: bytes = FILE) -> Json:
    """By the reader itself, without a process."""
    digest = signatures.digest_of(file)
    order = {
        "bundle": bundle.decode(),
        "trusted_root": settings.SIGSTORE_TRUSTED_ROOT,
        "sha256": digest.removeprefix("sha256:"),
        "digests": [digest, PINNED],
    }
    return bundle_reader.answer(order)


def changed(bundle: bytes, *path: str | int, value: Any) -> bytes:
    whole = place = orjson.loads(bundle)
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return orjson.dumps(whole)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_each_part_of_a_bundle_counts(sigstore: TestSigstore, settings: Any) -> None:
    bundle, other = sigstore.sign(FILE), sigstore.sign(FILE)
    entry = ("verificationMaterial", "tlogEntries", 0)
    theirs = orjson.loads(other)
    logged = theirs["verificationMaterial"]["tlogEntries"][0]
    late = sigstore.sign(FILE, since=SIGNED_AT + timedelta(minutes=11))
    stranger = TestSigstore()
    twice = orjson.loads(bundle)["verificationMaterial"]["tlogEntries"] * 2

    assert "signature" in read(bundle, settings)
    for broken in (
        # The key of another signature, another's log entry, another's promise and proof.
        changed(
            bundle, "messageSignature", "signature", value=theirs["messageSignature"]["signature"]
        ),
        changed(bundle, *entry, value=logged),
        changed(bundle, *entry, "inclusionPromise", value=logged["inclusionPromise"]),
        changed(bundle, *entry, "inclusionProof", value=logged["inclusionProof"]),
        changed(bundle, *entry, "canonicalizedBody", value=logged["canonicalizedBody"]),
        changed(bundle, *entry, "integratedTime", value="1772366401"),
        changed(
            bundle,
            "verificationMaterial",
            "certificate",
            value=theirs["verificationMaterial"]["certificate"],
        ),
        changed(bundle, "verificationMaterial", "tlogEntries", value=[]),
        changed(bundle, "verificationMaterial", "tlogEntries", value=twice),
        changed(bundle, "mediaType", value="application/json"),
        # Signed after the certificate had expired, and by another Sigstore.
        late,
        stranger.sign(FILE),
        b"{}",
        b"[" * 100_000,
    ):
        assert read(broken, settings).get("error") in ("invalid", "broken"), broken[:200]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_a_statement_names_what_it_is_about(sigstore: TestSigstore, settings: Any) -> None:
    other = f"sha256:{'b' * 64}"

    assert read(sigstore.attest(PINNED), settings)["signature"]["digest"] == PINNED
    assert read(sigstore.attest(other, PINNED), settings)["signature"]["digest"] == PINNED
    own = signatures.digest_of(FILE)
    assert read(sigstore.attest(own), settings)["signature"]["digest"] == own
    assert read(sigstore.attest(other), settings) == {"error": "subject"}
    assert read(sigstore.attest(f"sha512:{DIGEST}"), settings) == {"error": "subject"}
    assert read(sigstore.attest(PINNED, kind="text/plain"), settings) == {"error": "statement"}
    swapped = changed(
        sigstore.attest(other),
        "dsseEnvelope",
        "payload",
        value=orjson.loads(sigstore.attest(PINNED))["dsseEnvelope"]["payload"],
    )
    assert read(swapped, settings)["error"] == "invalid"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_the_root_is_the_shipped_one_or_the_files(
    sigstore: TestSigstore, settings: Any, tmp_path: Path
) -> None:
    bundle = sigstore.sign(FILE)

    settings.SIGSTORE_TRUSTED_ROOT = ""
    assert read(bundle, settings)["error"] == "invalid"
    settings.SIGSTORE_TRUSTED_ROOT = str(tmp_path / "absent.json")
    assert read(bundle, settings) == {"error": "root"}


@pytest.mark.long
def test_the_process_opens_no_connection_and_is_bounded(
    sigstore: TestSigstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for event in ("socket.connect", "socket.getaddrinfo"):
        with pytest.raises(PermissionError):
            bundle_reader.deny_connections(event, ())
    with pytest.raises(SignatureRefused, match="256 KiB"):
        signatures.verify(b" " * (signatures.MAX_BYTES + 1))
    with pytest.raises(SignatureRefused, match="no Sigstore bundle"):
        signatures.verify(b"\xff")
    monkeypatch.setattr(signatures, "READ_WITHIN_S", 0.001)
    with pytest.raises(SignatureRefused, match="too long"):
        signatures.verify(sigstore.sign(FILE))
