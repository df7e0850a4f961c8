"""A passkey in memory: answers as a browser and its device would, for tests by HTTP."""

import hashlib
import json
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url

UP, UV, AT = 0x01, 0x04, 0x40


class Device:
    def __init__(self, origin: str, *, counts: bool = True, verifies: bool = True) -> None:
        self.origin, self.counts, self.verifies = origin, counts, verifies
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id = hashlib.sha256(str(self.key.private_numbers().private_value).encode()).digest()
        self.count = 0
        # The user that it was made for; a device gives it with each answer.
        self.user = b""

    def cose(self) -> bytes:
        """Its public key."""
        public = self.key.public_key().public_numbers()
        x, y = public.x.to_bytes(32), public.y.to_bytes(32)
        return cbor2.dumps({1: 2, 3: -7, -1: 1, -2: x, -3: y})

    def create(self, options: dict[str, Any]) -> str:
        """What `navigator.credentials.create` would give, as JSON."""
        self.user = base64url_to_bytes(options["user"]["id"])
        client = self._client("webauthn.create", options["challenge"])
        credential = b"\0" * 16 + len(self.id).to_bytes(2) + self.id + self.cose()
        data = self._data(options["rp"]["id"], AT) + credential
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        return self._answer(clientDataJSON=client, attestationObject=attestation)

    def get(self, options: dict[str, Any]) -> str:
        """What `navigator.credentials.get` would give, as JSON."""
        self.count += self.counts
        client = self._client("webauthn.get", options["challenge"])
        data = self._data(options["rpId"])
        signed = data + hashlib.sha256(client).digest()
        signature = self.key.sign(signed, ec.ECDSA(hashes.SHA256()))
        said = {"clientDataJSON": client, "authenticatorData": data, "signature": signature}
        return self._answer(**said, userHandle=self.user)

    def _client(self, kind: str, challenge: str) -> bytes:
        said = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}
        return json.dumps(said).encode()

    def _data(self, rp_id: str, flags: int = 0) -> bytes:
        flags |= UP | (UV if self.verifies else 0)
        return hashlib.sha256(rp_id.encode()).digest() + bytes([flags]) + self.count.to_bytes(4)

    def _answer(self, **response: bytes) -> str:
        given = {name: bytes_to_base64url(value) for name, value in response.items()}
        here = bytes_to_base64url(self.id)
        return json.dumps({"id": here, "rawId": here, "type": "public-key", "response": given})
