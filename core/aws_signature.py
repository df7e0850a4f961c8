"""Signature Version 4 of a request, as AWS and stores that speak like S3 check it.

Source: AWS, "Authenticating Requests: Using the Authorization Header (Signature Version 4)".
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class AccessKey:
    """An account's key in one region and service; shows its secret nowhere."""

    access_key: str
    secret: str
    region: str
    service: str = "s3"

    def __repr__(self) -> str:
        return f"AccessKey({self.access_key!r}, {self.region!r})"

    def of_day(self, day: str) -> bytes:
        key = f"AWS4{self.secret}".encode()
        for part in (day, self.region, self.service, "aws4_request"):
            key = _mac(key, part)
        return key


def sign(
    key: AccessKey,
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    at: datetime,
) -> dict[str, str]:
    """The headers to add. `path` as it is sent, percent-encoded; `headers` with Host; `at` in
    UTC."""
    digest, time = hashlib.sha256(body).hexdigest(), at.strftime("%Y%m%dT%H%M%SZ")
    added = {"x-amz-content-sha256": digest, "x-amz-date": time}
    signed = {name.lower(): value.strip() for name, value in {**headers, **added}.items()}
    names = ";".join(sorted(signed))
    lines = [f"{name}:{signed[name]}" for name in sorted(signed)]
    request = "\n".join([method, path, query_string(query), *lines, "", names, digest])
    scope = f"{time[:8]}/{key.region}/{key.service}/aws4_request"
    hashed = hashlib.sha256(request.encode()).hexdigest()
    signature = _mac(key.of_day(time[:8]), f"{ALGORITHM}\n{time}\n{scope}\n{hashed}").hex()
    credential = f"Credential={key.access_key}/{scope}"
    authorization = f"{ALGORITHM} {credential},SignedHeaders={names},Signature={signature}"
    return {**added, "Authorization": authorization}


def query_string(query: Mapping[str, str]) -> str:
    """Sorted and percent-encoded, as it is signed and as it is sent."""
    pairs = sorted((quote(name, safe=""), quote(value, safe="")) for name, value in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
