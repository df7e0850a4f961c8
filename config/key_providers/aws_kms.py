"""A key of AWS KMS: `aws-kms:<ARN of the key>`.

The usual variables say who asks: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; and,
for an endpoint of one's own, AWS_ENDPOINT_URL_KMS. Source: AWS KMS API, Encrypt and Decrypt.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import urlsplit

from config.key_providers.key_requests import KeyProviderFailed, ask, text_in
from core.aws_signature import AccessKey, sign

_NAME = "AWS KMS"
_ARN = re.compile(r"arn:(aws[\w-]*):kms:([a-z0-9-]+):\d{12}:(?:key|alias)/[\w/-]+", re.ASCII)
# A part of what is encrypted: what KMS encrypted for others is none of ours.
_CONTEXT = {"purpose": "countersign installation secret"}


class AwsKms:
    def __init__(self, arn: str, networks: Sequence[str]) -> None:
        found = _ARN.fullmatch(arn)
        if found is None:
            raise KeyProviderFailed("Name the key of AWS KMS by its ARN.")
        self._arn, self._region, self._networks = arn, found[2], networks
        domain = "amazonaws.com.cn" if found[1] == "aws-cn" else "amazonaws.com"
        self._url = os.environ.get("AWS_ENDPOINT_URL_KMS", "").rstrip("/")
        self._url = self._url or f"https://kms.{self._region}.{domain}"

    def wrap(self, secret: bytes) -> bytes:
        return self._ask("Encrypt", {"Plaintext": b64encode(secret).decode()}, "CiphertextBlob")

    def unwrap(self, wrapped: bytes) -> bytes:
        return self._ask("Decrypt", {"CiphertextBlob": b64encode(wrapped).decode()}, "Plaintext")

    def _ask(self, action: str, said: dict[str, str], wanted: str) -> bytes:
        whole = {**said, "KeyId": self._arn, "EncryptionContext": _CONTEXT}
        body = json.dumps(whole).encode()
        key, session = _access_key(self._region)
        headers = {
            "Content-Type": "application/x-amz-json-1.1",
            "X-Amz-Target": f"TrentService.{action}",
            **({"X-Amz-Security-Token": session} if session else {}),
        }
        place = urlsplit(f"{self._url}/")
        to_sign = {**headers, "Host": place.netloc}
        signed = sign(key, "POST", place.path, {}, to_sign, body, at=datetime.now(UTC))
        reply = ask(_NAME, place.geturl(), {**headers, **signed}, body, self._networks)
        if reply.status != 200:
            raise KeyProviderFailed(f"{_NAME} answered HTTP {reply.status} to {action}.")
        return b64decode(text_in(_NAME, reply, wanted))


def _access_key(region: str) -> tuple[AccessKey, str]:
    """And the token of its session, if it is a temporary one."""
    given = [
        os.environ.get(f"AWS_{name}", "")
        for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")
    ]
    if not given[0] or not given[1]:
        raise KeyProviderFailed("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set.")
    return AccessKey(given[0], given[1], region, "kms"), given[2]
