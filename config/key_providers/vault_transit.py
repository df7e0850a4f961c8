"""A key of HashiCorp Vault's transit engine: `vault:<mount>/<key>`, such as `vault:transit/main`.

Vault's usual variables say where it is and who asks: VAULT_ADDR, VAULT_TOKEN or VAULT_TOKEN_FILE
(read each time: an agent of Vault renews it), VAULT_NAMESPACE. OpenBao answers alike.
Source: Vault's HTTP API, "Transit secrets engine", Encrypt data and Decrypt data.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path

from config.key_providers.key_requests import KeyProviderFailed, ask, text_in

_NAME = "Vault"
_PATH = re.compile(r"([\w./-]{1,200})/([\w.-]{1,200})", re.ASCII)


class VaultTransit:
    def __init__(self, path: str, networks: Sequence[str]) -> None:
        found = _PATH.fullmatch(path)
        if found is None or ".." in path:
            raise KeyProviderFailed("Name Vault's key as vault:<mount>/<key>.")
        self._mount, self._key, self._networks = found[1], found[2], networks

    def wrap(self, secret: bytes) -> bytes:
        plaintext = {"plaintext": b64encode(secret).decode()}
        return self._ask("encrypt", plaintext, "ciphertext").encode()

    def unwrap(self, wrapped: bytes) -> bytes:
        # It names the version of the key: older ones open until Vault forbids them.
        return b64decode(self._ask("decrypt", {"ciphertext": wrapped.decode()}, "plaintext"))

    def _ask(self, verb: str, said: dict[str, str], wanted: str) -> str:
        where = os.environ.get("VAULT_ADDR", "").rstrip("/")
        if not where:
            raise KeyProviderFailed("VAULT_ADDR is not set: where is Vault?")
        url = f"{where}/v1/{self._mount}/{verb}/{self._key}"
        reply = ask(_NAME, url, _headers(), json.dumps(said).encode(), self._networks)
        if reply.status != 200:
            raise KeyProviderFailed(f"{_NAME} answered HTTP {reply.status} to {verb}.")
        return text_in(_NAME, reply, "data", wanted)


def _headers() -> dict[str, str]:
    said = {"Content-Type": "application/json", "X-Vault-Token": _token()}
    namespace = os.environ.get("VAULT_NAMESPACE", "")
    return said | ({"X-Vault-Namespace": namespace} if namespace else {})


def _token() -> str:
    path = os.environ.get("VAULT_TOKEN_FILE", "")
    try:
        token = Path(path).read_text().strip() if path else os.environ.get("VAULT_TOKEN", "")
    except OSError as error:
        raise KeyProviderFailed(f"VAULT_TOKEN_FILE: {path} cannot be read.") from error
    if not token:
        raise KeyProviderFailed("Neither VAULT_TOKEN nor VAULT_TOKEN_FILE is set.")
    return token
