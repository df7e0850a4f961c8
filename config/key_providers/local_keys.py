"""Keys in a file of the host: `local:/etc/countersign/keys`, one a line, the newest first.

Each is 32 bytes in base64 (`openssl rand -base64 32`). The first one encrypts, all of them open.
"""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from config.key_providers.key_requests import KeyProviderFailed

_PLACE, _NONCE, _SIZE = b"countersign installation secret", 12, 32


class LocalKeys:
    def __init__(self, path: str, _networks: Sequence[str]) -> None:
        self._path = Path(path)

    def wrap(self, secret: bytes) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + self._keys()[0].encrypt(nonce, secret, _PLACE)

    def unwrap(self, wrapped: bytes) -> bytes:
        for key in self._keys():
            try:
                return key.decrypt(wrapped[:_NONCE], wrapped[_NONCE:], _PLACE)
            except (InvalidTag, ValueError):
                continue
        raise KeyProviderFailed(f"No key in {self._path} opens the installation's secret.")

    def _keys(self) -> list[AESGCM]:
        try:
            keys = [b64decode(line, validate=True) for line in self._path.read_text().split()]
        except (OSError, ValueError) as error:
            raise KeyProviderFailed(f"The keys in {self._path} cannot be read.") from error
        if not keys or any(len(key) != _SIZE for key in keys):
            raise KeyProviderFailed(f"{self._path} needs keys of {_SIZE} bytes in base64.")
        return [AESGCM(key) for key in keys]
