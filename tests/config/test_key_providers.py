"""The installation's secret under a key of another system: HashiCorp Vault, AWS KMS, a file."""

from __future__ import annotations

import json
import secrets
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from config.key_providers import provider
from config.key_providers.key_requests import KeyProviderFailed
from tests.config.conftest import Manage

SECRET = "the installation's secret, of which nobody else knows"
TOKEN = "hvs.only-for-tests"
ARN = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"


class KeyService:
    """Answers as Vault's transit engine and as AWS KMS do, with keys that it keeps."""

    def __init__(self) -> None:
        self.versions = [AESGCM(AESGCM.generate_key(256))]
        self.asked: list[dict[str, Any]] = []
        # A status with which it answers everything.
        self.fails = 0
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                service.asked.append({"path": self.path, "headers": headers, "said": said})
                status, answer = service.answer(self.path, headers, said)
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(
        self, path: str, headers: dict[str, str], said: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        if self.fails:
            return self.fails, {"errors": ["internal error"]}
        if path.startswith("/v1/"):
            return self._vault(path, headers, said)
        return self._kms(headers, said)

    def _vault(
        self, path: str, headers: dict[str, str], said: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        if headers.get("x-vault-token") != TOKEN:
            return 403, {"errors": ["permission denied"]}
        if path == "/v1/transit/encrypt/main":
            text = self._sealed(b64decode(said["plaintext"]))
            return 200, {"data": {"ciphertext": f"vault:v{len(self.versions)}:{text}"}}
        if path == "/v1/transit/decrypt/main":
            _vault, version, text = said["ciphertext"].split(":")
            opened = self._opened(text, int(version[1:]) - 1)
            return 200, {"data": {"plaintext": b64encode(opened).decode()}}
        return 404, {"errors": []}

    def _kms(self, headers: dict[str, str], said: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        assert headers["content-type"] == "application/x-amz-json-1.1"
        assert said["KeyId"] == ARN
        assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
        assert "/eu-central-1/kms/aws4_request,SignedHeaders=content-type;host;" in str(headers)
        if said["EncryptionContext"] != {"purpose": "countersign installation secret"}:
            return 400, {"__type": "InvalidCiphertextException"}
        if headers["x-amz-target"] == "TrentService.Encrypt":
            return 200, {"CiphertextBlob": self._sealed(b64decode(said["Plaintext"])), "KeyId": ARN}
        opened = self._opened(said["CiphertextBlob"], len(self.versions) - 1)
        return 200, {"Plaintext": b64encode(opened).decode(), "KeyId": ARN}

    def _sealed(self, plaintext: bytes) -> str:
        nonce = secrets.token_bytes(12)
        return b64encode(nonce + self.versions[-1].encrypt(nonce, plaintext, None)).decode()

    def _opened(self, text: str, version: int) -> bytes:
        sealed = b64decode(text)
        return self.versions[version].decrypt(sealed[:12], sealed[12:], None)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyService]:
    running = KeyService()
    for name, value in environment(running).items():
        monkeypatch.setenv(name, value)
    yield running
    running.close()


def environment(service: KeyService) -> dict[str, str]:
    return {
        "COUNTERSIGN_KEY_NETWORKS": "127.0.0.0/8",
        "VAULT_ADDR": service.url,
        "VAULT_TOKEN": TOKEN,
        "AWS_ENDPOINT_URL_KMS": service.url,
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "only for tests",
    }


@pytest.fixture
def local(tmp_path: Path) -> str:
    keys = tmp_path / "keys"
    keys.write_text(f"{b64encode(bytes(range(32))).decode()}\n")
    return f"local:{keys}"


@pytest.fixture(params=["local", "vault:transit/main", f"aws-kms:{ARN}"], ids=lambda it: it[:5])
def chosen(request: pytest.FixtureRequest, service: KeyService, local: str) -> str:
    return local if request.param == "local" else str(request.param)


def test_each_provider_opens_what_it_wrapped(chosen: str) -> None:
    kept = provider.wrap(SECRET, chosen)

    assert kept.startswith("wrapped.")
    assert SECRET not in kept
    assert provider.unwrap(kept) == SECRET
    assert provider.unwrap("as it is") == "as it is"


def test_what_was_altered_opens_nowhere(local: str) -> None:
    kept = provider.wrap(SECRET, local)

    for broken in (kept[:-3], kept[:-4] + "AAAA", "wrapped.x", kept + ".more"):
        with pytest.raises(KeyProviderFailed):
            provider.unwrap(broken)


def test_earlier_versions_and_providers_open_too(service: KeyService, local: str) -> None:
    first = provider.wrap(SECRET, "vault:transit/main")
    service.versions.append(AESGCM(AESGCM.generate_key(256)))
    kept = [first, provider.wrap(SECRET, "vault:transit/main"), provider.wrap(SECRET, local)]
    keys = Path(local.removeprefix("local:"))
    keys.write_text(f"{b64encode(b'n' * 32).decode()}\n{keys.read_text()}")

    assert {provider.unwrap(one) for one in kept} == {SECRET}


def test_a_session_token_is_signed_and_sent(
    service: KeyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-a-session")
    provider.wrap(SECRET, f"aws-kms:{ARN}")

    headers = service.asked[0]["headers"]
    assert headers["x-amz-security-token"] == "of-a-session"
    assert ";x-amz-security-token;" in headers["authorization"]


def test_vaults_token_may_be_in_a_file_that_is_renewed(
    service: KeyService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    monkeypatch.delenv("VAULT_TOKEN")
    monkeypatch.setenv("VAULT_TOKEN_FILE", str(file))
    monkeypatch.setenv("VAULT_NAMESPACE", "team")

    file.write_text("expired\n")
    with pytest.raises(KeyProviderFailed, match="HTTP 403"):
        provider.wrap(SECRET, "vault:transit/main")
    file.write_text(f"{TOKEN}\n")
    provider.wrap(SECRET, "vault:transit/main")

    assert service.asked[-1]["headers"]["x-vault-namespace"] == "team"


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("gcp:x", "is no provider of keys"),
        ("vault", "is no provider of keys"),
        ("vault:../sys/main", "Name Vault's key as"),
        ("aws-kms:main", "by its ARN"),
        ("local:/there/is/nothing", "cannot be read"),
    ],
)
def test_what_names_no_key_is_said_so(service: KeyService, named: str, why: str) -> None:
    with pytest.raises(KeyProviderFailed, match=why):
        provider.wrap(SECRET, named)

    assert service.asked == []


def test_keys_are_asked_for_in_named_networks_alone(
    service: KeyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTERSIGN_KEY_NETWORKS", "")
    # Networks of servers are none of the key's.
    monkeypatch.setenv("COUNTERSIGN_UPSTREAM_NETWORKS", "127.0.0.0/8")

    with pytest.raises(KeyProviderFailed, match="Vault cannot be asked"):
        provider.wrap(SECRET, "vault:transit/main")

    assert service.asked == []


@pytest.mark.parametrize("missing", ["VAULT_ADDR", "VAULT_TOKEN", "AWS_SECRET_ACCESS_KEY"])
def test_what_is_not_set_is_said_so(
    service: KeyService, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.delenv(missing)
    named = "vault:transit/main" if missing.startswith("VAULT") else f"aws-kms:{ARN}"

    with pytest.raises(KeyProviderFailed, match=missing):
        provider.wrap(SECRET, named)


@pytest.mark.long
def test_the_secret_of_an_installation_is_wrapped_and_wrapped_anew(
    manage: Manage, service: KeyService, local: str, tmp_path: Path
) -> None:
    """By the command, as its administrator does; its processes open it when they start."""
    file = tmp_path / "data" / "secret.key"
    assert manage("shell", "-v", "0", "-c", NOTE).returncode == 0
    plain = file.read_text().strip()
    by_vault = environment(service) | {"COUNTERSIGN_KEY_PROVIDER": "vault:transit/main"}

    wrapped = manage("wrap_secret", **by_vault)

    assert wrapped.returncode == 0, wrapped.stderr
    assert plain not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert manage("shell", "-v", "0", "-c", READ, **by_vault).stdout.strip() == plain
    service.fails = 503
    failed = manage("shell", "-v", "0", "-c", READ, **by_vault)
    assert "Vault answered HTTP 503 to decrypt." in failed.stderr
    assert plain not in failed.stderr
    service.fails = 0

    # To another key, without a word about it in Vault.
    again = manage("wrap_secret", **by_vault | {"COUNTERSIGN_KEY_PROVIDER": local})
    assert again.returncode == 0, again.stderr
    assert manage("shell", "-v", "0", "-c", READ).stdout.strip() == plain
    entries = manage("shell", "-v", "0", "-c", ENTRIES).stdout.split()
    assert entries == ["vault:transit/main", local]

    # Another secret is wrapped, too, and the one before it stays readable.
    rotated = manage("rotate_secret", COUNTERSIGN_KEY_PROVIDER=local)
    assert rotated.returncode == 0, rotated.stderr
    assert file.read_text().startswith("wrapped.")
    assert manage("shell", "-v", "0", "-c", OLD_ONES).stdout.strip() == plain


NOTE = "from audit.signing import note_secret; note_secret()"
READ = "from django.conf import settings; print(settings.SECRET_KEY)"
OLD_ONES = "from django.conf import settings; print(*settings.OLD_SECRET_KEYS)"
ENTRIES = """
from audit.models import Entry
for one in Entry.objects.filter(action="secret.wrapped").order_by("pk"):
    print(one.details["provider"])
"""


@pytest.mark.long
def test_a_secret_of_the_environment_is_printed(manage: Manage, local: str) -> None:
    given = {"COUNTERSIGN_SECRET_KEY": "given" * 9, "COUNTERSIGN_KEY_PROVIDER": local}

    refused = manage("wrap_secret", **given)
    printed = manage("wrap_secret", "--print", **given)
    nothing = manage("wrap_secret", COUNTERSIGN_SECRET_KEY="given" * 9)

    assert "run this with --print" in refused.stderr
    assert "COUNTERSIGN_KEY_PROVIDER is not set" in nothing.stderr
    text = printed.stdout.strip()
    read = manage("shell", "-v", "0", "-c", READ, COUNTERSIGN_SECRET_KEY=text)
    assert read.stdout.strip() == "given" * 9
