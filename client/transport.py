#!/usr/bin/env python3
"""Countersign from outside: the command `countersign`, and a typed client of its API for service
accounts (class Countersign). One file, which needs Python 3.11 and nothing else.

Written by `python -m client.generate --write` in Countersign's repository.
"""

from __future__ import annotations

import argparse
import getpass
import hashlib
import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from email.message import Message
from http.client import HTTPException
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar
from urllib.parse import quote, urlencode, urlsplit

T = TypeVar("T")
Json = dict[str, Any]
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# A server that wants to be left alone for longer is not waited for.
LONGEST_WAIT_S = 30.0
TRY_AGAIN = (429, 502, 503, 504)


class Problem(Exception):
    """An answer of 400 or more, as RFC 9457 has it. `errors`: each wrong member of the body, with
    `pointer` and `detail`. `members`: whatever else the answer has."""

    def __init__(self, status: int, members: Mapping[str, Any]) -> None:
        self.status = status
        self.title = str(members.get("title", ""))
        self.detail = str(members.get("detail", ""))
        self.errors: list[dict[str, Any]] = list(members.get("errors", ()))
        self.members = dict(members)
        super().__init__(f"{status}: {self.detail or self.title}")


class Unreachable(Exception):
    """No answer came. Whether a change was made is known only where it was sent again."""


class Versioned(NamedTuple, Generic[T]):
    """A row with its version, which a change of it needs."""

    value: T
    etag: str


class Reply(NamedTuple):
    status: int
    headers: Message
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


class _Opener(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token is for one address."""

    def redirect_request(self, *args: Any, **named: Any) -> None:
        return None


class Transport:
    """`url`: the console's address. `token`: of a service account (css_…). Requests that may be
    repeated are sent up to `attempts` times: reads, and changes with an idempotency key."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_s: float = 30,
        attempts: int = 3,
        allow_http: bool = False,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address: https://HOST is.")
        if parts.scheme == "http" and parts.hostname not in LOOPBACK and not allow_http:
            raise ValueError("The token would be sent in clear: use https, or allow_http=True.")
        self.url, self.token = url.rstrip("/"), token
        self.timeout_s, self.attempts = timeout_s, attempts
        self._opener = urllib.request.build_opener(_Opener)

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        key: str | None = None,
        etag: str = "",
    ) -> Reply:
        """`key`: an idempotency key; "" for a new one, None where the address takes none. Raises
        Problem and Unreachable."""
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key or str(uuid.uuid4())
        if etag:
            headers["If-Match"] = etag
        if body is not None:
            headers["Content-Type"] = "application/json"
        data = None if body is None else json.dumps(body).encode()
        given = {name: value for name, value in (query or {}).items() if value is not None}
        there = f"{self.url}{path}" + (f"?{urlencode(given)}" if given else "")
        request = urllib.request.Request(there, data, headers, method=method)
        left = self.attempts if method == "GET" or key is not None else 1
        return self._repeat(request, left)

    def _repeat(self, request: urllib.request.Request, left: int) -> Reply:
        for wait_s in [2.0**n for n in range(left - 1)]:
            try:
                return self._once(request)
            except Unreachable:
                time.sleep(wait_s)
            except Problem as problem:
                after = problem.members.get("retry_after_s", wait_s)
                if problem.status not in TRY_AGAIN or after > LONGEST_WAIT_S:
                    raise
                time.sleep(after)
        return self._once(request)

    def _once(self, request: urllib.request.Request) -> Reply:
        try:
            with self._opener.open(request, timeout=self.timeout_s) as answer:
                return Reply(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                raise Problem(error.code, _members(error)) from error
        except (OSError, HTTPException) as error:
            said = getattr(error, "reason", error)
            raise Unreachable(f"{urlsplit(self.url).netloc}: {said}") from error

    def download(self, path: str, file: Path, *, digest: str) -> None:
        """Adds to `file` what it lacks of the bytes with this SHA-256, over lines that are cut too.
        Raises Problem, Unreachable and ValueError: then the bytes are others."""
        left, size = self.attempts, -1
        while True:
            try:
                self._fetch_rest(path, file, f'"{digest}"')
                break
            except Unreachable:
                grown = file.stat().st_size if file.exists() else 0
                left, size = (self.attempts if grown > size else left - 1), grown
                if left <= 0:
                    raise
                time.sleep(1)
        with file.open("rb") as content:
            if hashlib.file_digest(content, "sha256").hexdigest() != digest:
                raise ValueError(f"{file} is not what was prepared.")

    def _fetch_rest(self, path: str, file: Path, etag: str) -> None:
        had = file.stat().st_size if file.exists() else 0
        headers = {"Authorization": f"Bearer {self.token}", "If-Range": etag}
        headers |= {"Range": f"bytes={had}-"} if had else {}
        request = urllib.request.Request(f"{self.url}{path}", headers=headers)
        try:
            with self._opener.open(request, timeout=self.timeout_s) as answer:
                _copy(answer, file, append=answer.status == 206)
        except urllib.error.HTTPError as error:
            with error:
                # Nothing is left of it, or what is there is longer: the digest tells which.
                if error.code != 416:
                    raise Problem(error.code, _members(error)) from error
        except (OSError, HTTPException) as error:
            raise Unreachable(f"{urlsplit(self.url).netloc}: {error}") from error

    def _pages(self, path: str, query: Mapping[str, Any]) -> Iterator[Any]:
        """Every row, a page at a time."""
        cursor: str | None = None
        while True:
            page = self.send("GET", path, query={**query, "cursor": cursor}).json()
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return


def _copy(answer: Any, file: Path, *, append: bool) -> None:
    """Raises HTTPException where the line was cut."""
    left = int(answer.headers["Content-Length"])
    with file.open("ab" if append else "wb") as target:
        while content := answer.read(1024 * 1024):
            left -= target.write(content)
    if left:
        raise HTTPException(f"the line was cut, {left} bytes before the end")


def _members(error: urllib.error.HTTPError) -> Json:
    """The problem's members; those of a proxy's page are its status alone."""
    try:
        read = json.loads(error.read())
    except (ValueError, OSError, HTTPException):
        read = None
    found = read if isinstance(read, dict) else {"title": error.reason}
    after = error.headers.get("Retry-After", "")
    return {**found, "retry_after_s": float(after)} if after.isdecimal() else found


def _place(text: str | int) -> str:
    return quote(str(text), safe="")
