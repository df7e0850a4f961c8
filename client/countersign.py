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


class Agent(TypedDict):
    name: str
    owner: str
    enabled: bool
    hold_seconds: int | None
    requires_dpop: bool
    team: str | None
    created_at: str


class AgentBody(TypedDict):
    name: str
    owner: str


class ApiDocument(TypedDict):
    server: str
    address: str
    document_url: str
    external_documents: list[str]
    digest: str
    changed_at: str
    operations: list[Operation]


class ApiServerBody(TypedDict):
    document_url: NotRequired[str]
    document: NotRequired[str]
    external_references: NotRequired[bool]
    name: str
    title: NotRequired[str]
    url: NotRequired[str]
    credential: NotRequired[str]
    headers: NotRequired[dict[str, str]]


class Approval(TypedDict):
    call: Call
    asked_at: str
    decide_by: str | None


class Call(TypedDict):
    id: str
    agent: str
    person: str
    tool: str
    toolset: str
    state: Literal[
        "refused",
        "invalid",
        "held",
        "approved",
        "queued",
        "running",
        "succeeded",
        "tool_error",
        "failed",
        "timed_out",
        "cancelled",
        "unknown",
        "denied",
        "expired",
        "withdrawn",
        "superseded",
        "resolved",
    ]
    effect: str
    reason: str
    executed: str | None
    outcome: str
    asked_at: str
    finished_at: str | None
    page: str


class Caller(TypedDict):
    agent: str
    calls: int


class Change(TypedDict):
    what: str
    name: str
    kind: Literal["added", "removed", "changed"]
    before: str | None
    after: str | None


class ChannelBody(TypedDict):
    channel: Literal["email", "push"]


class ConnectionBody(TypedDict):
    url: NotRequired[str]
    command: NotRequired[str]
    credential: NotRequired[str]
    headers: NotRequired[dict[str, str]]


class Day(TypedDict):
    day: str
    calls: int
    error_share: float
    p50: float | None
    p95: float | None


class Definition(TypedDict):
    version: int
    digest: str
    first_seen_at: str
    risk: int
    findings: list[str]
    definition: dict[str, Any]


class Delivery(TypedDict):
    id: str
    event: str
    call: str | None
    state: Literal["pending", "sent", "dropped", "dead"]
    attempts: int
    created_at: str
    ended_at: str | None
    error: str


class Difference(TypedDict):
    before: int
    after: int
    changes: list[Change]


class Discovery(TypedDict):
    id: int
    at: str
    succeeded: bool
    changed: bool
    summary: str


class DocumentBody(TypedDict):
    document_url: NotRequired[str]
    document: NotRequired[str]
    external_references: NotRequired[bool]


class EndBody(TypedDict):
    why: str


class Entry(TypedDict):
    id: int
    at: str
    action: str
    actor_kind: str
    actor: str
    call: str | None
    from_state: str
    to_state: str
    agent: str
    person: str
    server: str
    tool: str
    reason: str
    details: dict[str, Any]


class Export(TypedDict):
    id: int
    at: str
    format: Literal["csv", "jsonl", "proof"]
    filters: dict[str, str]
    file: str
    state: Literal[
        "direct",
        "waiting",
        "preparing",
        "ready",
        "cancelled",
        "deleted",
        "expired",
        "failed",
        "changed",
    ]
    percent: int
    size: int
    fault: str
    expires_at: str | None
    rows: int
    finished_at: str | None
    digest: str


class ExportBody(TypedDict):
    format: NotRequired[Literal["csv", "jsonl", "proof"]]
    filters: NotRequired[dict[str, str]]
    background: NotRequired[bool]


class FailedMessages(TypedDict):
    receivers: list[FailedReceiver]


class FailedReceiver(TypedDict):
    channel: Literal["email", "webhook", "push"]
    webhook: str | None
    count: int


class FileBody(TypedDict):
    proposal: str


class Handling(TypedDict):
    mode: Literal["auto", "inline", "background"]
    timeout_seconds: int
    retry_safe: bool
    confirmed_read_only: bool
    cancel_is_final: bool
    duplicates: Literal["auto", "guard", "allow"]


class Health(TypedDict):
    paused: str
    pending_approvals: int
    oldest_pending_at: str | None
    queued_calls: int
    running_calls: int
    unresolved_outcomes: int
    emergency_stops: int
    unreachable_servers: list[str]


class ImportBody(TypedDict):
    name: str
    title: NotRequired[str]
    server_json: NotRequired[dict[str, Any]]
    server_json_text: NotRequired[str]
    signature: NotRequired[dict[str, Any]]
    registry: NotRequired[str]
    server: NotRequired[str]
    version: NotRequired[str]
    remote: NotRequired[int]
    package: NotRequired[int]
    command: NotRequired[str]
    values: NotRequired[dict[str, str]]


class IssuedToken(TypedDict):
    id: str
    created_at: str
    created_by: str | None
    expires_at: str
    revoked_at: str | None
    last_used_at: str | None
    last_address: str | None
    toolsets: list[str]
    reads_only: bool
    token: str | None


class Labels(TypedDict):
    untrusted: Literal["hinted", "yes", "no"]
    sensitive: Literal["hinted", "yes", "no"]
    sink: Literal["hinted", "yes", "no"]
    counting: list[Literal["untrusted", "sensitive", "sink"]]


class LastReview(TypedDict):
    at: str
    by: str | None


class Limit(TypedDict):
    name: str
    mode: NotRequired[Literal["enforce", "shadow", "off"]]
    server: NotRequired[str]
    tool: NotRequired[str]
    hint: NotRequired[Literal["", "destructive", "writes", "open_world"]]
    agents: NotRequired[list[str]]
    owner_groups: NotRequired[list[str]]
    reason: NotRequired[str]
    effect: Literal["warn", "ask", "deny"]
    kind: Literal["calls", "bytes", "concurrency", "cost", "repeats", "failures"]
    amount: str
    period: NotRequired[Literal["second", "minute", "hour", "day", "month", ""]]
    burst: NotRequired[int | None]
    cost: NotRequired[str | None]
    cost_argument: NotRequired[str]
    cost_result: NotRequired[str]
    unit: NotRequired[str]
    minutes: NotRequired[int | None]
    per: NotRequired[list[Literal["agent", "person", "toolset", "server", "tool", "risk"]]]
    id: int


class LimitBody(TypedDict):
    name: str
    mode: NotRequired[Literal["enforce", "shadow", "off"]]
    server: NotRequired[str]
    tool: NotRequired[str]
    hint: NotRequired[Literal["", "destructive", "writes", "open_world"]]
    agents: NotRequired[list[str]]
    owner_groups: NotRequired[list[str]]
    reason: NotRequired[str]
    effect: Literal["warn", "ask", "deny"]
    kind: Literal["calls", "bytes", "concurrency", "cost", "repeats", "failures"]
    amount: str
    period: NotRequired[Literal["second", "minute", "hour", "day", "month", ""]]
    burst: NotRequired[int | None]
    cost: NotRequired[str | None]
    cost_argument: NotRequired[str]
    cost_result: NotRequired[str]
    unit: NotRequired[str]
    minutes: NotRequired[int | None]
    per: NotRequired[list[Literal["agent", "person", "toolset", "server", "tool", "risk"]]]


class Loss(TypedDict):
    tool: str
    path: str
    why: str


class Mark(TypedDict):
    said: str
    quote: str


class Me(TypedDict):
    name: str
    purpose: str
    made_by: str
    permissions: list[str]
    token: str
    expires_at: str


class Mistake(TypedDict):
    pointer: str
    detail: str


class NoticedLimit(TypedDict):
    name: str
    mode: NotRequired[Literal["enforce", "shadow", "off"]]
    server: NotRequired[str]
    tool: NotRequired[str]
    hint: NotRequired[Literal["", "destructive", "writes", "open_world"]]
    agents: NotRequired[list[str]]
    owner_groups: NotRequired[list[str]]
    reason: NotRequired[str]
    effect: Literal["warn", "ask", "deny"]
    kind: Literal["calls", "bytes", "concurrency", "cost", "repeats", "failures"]
    amount: str
    period: NotRequired[Literal["second", "minute", "hour", "day", "month", ""]]
    burst: NotRequired[int | None]
    cost: NotRequired[str | None]
    cost_argument: NotRequired[str]
    cost_result: NotRequired[str]
    unit: NotRequired[str]
    minutes: NotRequired[int | None]
    per: NotRequired[list[Literal["agent", "person", "toolset", "server", "tool", "risk"]]]
    id: int
    notice: str


class OnCallOverride(TypedDict):
    id: str
    person: str
    begins_at: str
    ends_at: str


class OnCallOverrideBody(TypedDict):
    person: str
    begins_at: str
    ends_at: str


class OnCallSchedule(TypedDict):
    id: str
    name: str
    time_zone: str
    handover_day: (
        Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"] | None
    )
    handover_at: str | None
    starts_on: str | None
    people: list[str]
    calendar_url: str | None
    calendar_read_at: str | None
    calendar_error: str
    on_call: str | None


class OnCallScheduleBody(TypedDict):
    name: str
    time_zone: NotRequired[str]
    handover_day: NotRequired[
        Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    ]
    handover_at: NotRequired[str]
    starts_on: NotRequired[str]
    people: NotRequired[list[str]]
    calendar_url: NotRequired[str]


class Operation(TypedDict):
    operation: str
    tool: str
    summary: str
    offered: bool
    effect: str
    left_out: str
    notes: list[str]


class OperationBody(TypedDict):
    operation: str
    effect: NotRequired[Literal["reads", "changes", "destroys"]]


class OperationsBody(TypedDict):
    offered: list[OperationBody]


class Origin(TypedDict):
    name: str
    version: str
    digest: str
    registry: str | None
    is_namespace_checked: bool
    fetched_at: str
    published_at: str | None
    status: str | None
    package: str | None
    package_version: str | None
    pinned_digest: str | None
    names_package: bool
    is_moved: bool


class Outcomes(TypedDict):
    succeeded: int
    error: int
    stopped: int
    invalid: int
    live: int


class Override(TypedDict):
    name: str
    title: str
    description: str
    pinned: str


class AgentChange(TypedDict):
    enabled: NotRequired[bool]
    reason: NotRequired[str]
    hold_seconds: NotRequired[int | None]
    requires_dpop: NotRequired[bool]
    team: NotRequired[str | None]


class HandlingChange(TypedDict):
    mode: NotRequired[Literal["auto", "inline", "background"]]
    timeout_seconds: NotRequired[int]
    retry_safe: NotRequired[bool]
    confirmed_read_only: NotRequired[bool]
    cancel_is_final: NotRequired[bool]
    duplicates: NotRequired[Literal["auto", "guard", "allow"]]


class LabelsChange(TypedDict):
    untrusted: NotRequired[Literal["hinted", "yes", "no"]]
    sensitive: NotRequired[Literal["hinted", "yes", "no"]]
    sink: NotRequired[Literal["hinted", "yes", "no"]]


class LimitChange(TypedDict):
    name: NotRequired[str]
    mode: NotRequired[Literal["enforce", "shadow", "off"]]
    server: NotRequired[str]
    tool: NotRequired[str]
    hint: NotRequired[Literal["", "destructive", "writes", "open_world"]]
    agents: NotRequired[list[str]]
    owner_groups: NotRequired[list[str]]
    reason: NotRequired[str]
    effect: NotRequired[Literal["warn", "ask", "deny"]]
    kind: NotRequired[Literal["calls", "bytes", "concurrency", "cost", "repeats", "failures"]]
    amount: NotRequired[str]
    period: NotRequired[Literal["second", "minute", "hour", "day", "month", ""]]
    burst: NotRequired[int | None]
    cost: NotRequired[str | None]
    cost_argument: NotRequired[str]
    cost_result: NotRequired[str]
    unit: NotRequired[str]
    minutes: NotRequired[int | None]
    per: NotRequired[list[Literal["agent", "person", "toolset", "server", "tool", "risk"]]]


class OnCallScheduleChange(TypedDict):
    name: NotRequired[str]
    time_zone: NotRequired[str]
    handover_day: NotRequired[
        Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    ]
    handover_at: NotRequired[str]
    starts_on: NotRequired[str]
    people: NotRequired[list[str]]
    calendar_url: NotRequired[str]


class OverrideChange(TypedDict):
    name: NotRequired[str]
    title: NotRequired[str]
    description: NotRequired[str]
    pinned: NotRequired[str]


class ResultsChange(TypedDict):
    schema: NotRequired[Literal["", "note", "block"]]
    hidden: NotRequired[Literal["", "remove", "show"]]
    secrets: NotRequired[bool]
    personal: NotRequired[bool]
    tracebacks: NotRequired[bool]
    max_bytes: NotRequired[int | None]
    links: NotRequired[bool]
    hosts: NotRequired[str]
    marking: NotRequired[Literal["", "found", "all"]]
    patterns: NotRequired[str]


class RuleChange(TypedDict):
    name: NotRequired[str]
    mode: NotRequired[Literal["enforce", "shadow", "off"]]
    server: NotRequired[str]
    tool: NotRequired[str]
    hint: NotRequired[Literal["", "destructive", "writes", "open_world"]]
    agents: NotRequired[list[str]]
    owner_groups: NotRequired[list[str]]
    reason: NotRequired[str]
    effect: NotRequired[Literal["allow", "ask", "deny"]]
    when: NotRequired[str]
    instead: NotRequired[str]
    unnamed: NotRequired[bool]
    thresholds: NotRequired[list[ThresholdBody]]
    decide_within: NotRequired[int | None]
    start_within: NotRequired[int | None]
    confirm_grants: NotRequired[bool]
    shows_arguments: NotRequired[bool]
    results: NotRequired[ResultsBody]
    place: NotRequired[int]


class ServerChange(TypedDict):
    enabled: NotRequired[bool]
    reason: NotRequired[str]
    relays: NotRequired[list[Literal["elicitation", "roots", "sampling"]]]
    wanted_revision: NotRequired[
        Literal["", "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
    ]


class ToolsetChange(TypedDict):
    title: NotRequired[str]
    servers: NotRequired[list[str]]
    tools: NotRequired[list[str]]
    agents: NotRequired[list[str]]
    separator: NotRequired[Literal["_", "-", "."]]
    search_mode: NotRequired[bool]
    own_tools: NotRequired[
        list[
            Literal[
                "await_call", "get_call", "cancel_call", "my_waiting_calls", "justify", "explain"
            ]
        ]
    ]
    hold_seconds: NotRequired[int | None]
    agent_sign_in: NotRequired[bool]
    registry_readers: NotRequired[Literal["none", "tokens", "anyone"]]


class UserChange(TypedDict):
    enabled: NotRequired[bool]
    reason: NotRequired[str]


class WebhookChange(TypedDict):
    name: NotRequired[str]
    url: NotRequired[str]
    language: NotRequired[Literal["en", "zh-hans"]]
    events: NotRequired[
        list[
            Literal[
                "approval.needed",
                "approval.reminder",
                "approval.decided",
                "approval.expired",
                "approval.withdrawn",
                "call.outcome_unknown",
                "definition.review_needed",
                "server.unreachable",
                "server.reachable",
                "on_call_calendar.failed",
                "on_call_calendar.recovered",
                "token.expiring",
                "limit.reached",
                "agent.unusual",
                "audit.verification_failed",
                "backup.failed",
                "emergency_stop.began",
                "emergency_stop.ended",
                "role.changed",
                "break_glass.used",
            ]
        ]
    ]
    enabled: NotRequired[bool]


class Plan(TypedDict):
    digest: str
    base_digest: str
    managed_by: str
    origin: str
    proposal: str
    changes: list[PolicyChange]
    result: Any
    created_at: str
    applied_at: str | None
    confirmed_by: list[str]
    needs: int
    address: str
    markdown: str


class PlanBody(TypedDict):
    proposal: str
    origin: NotRequired[str]
    calls: NotRequired[int]


class PolicyChange(TypedDict):
    section: str
    name: str
    kind: Literal["added", "changed", "removed", "moved"]
    before: Any
    after: Any
    members: list[str]


class PolicyDifference(TypedDict):
    changes: list[PolicyChange]


class PolicyExport(TypedDict):
    policy: str


class PublicationBody(TypedDict):
    definitions: list[ReviewedBody]


class Published(TypedDict):
    published: int


class ReasonBody(TypedDict):
    reason: NotRequired[str]


class Repeated(TypedDict):
    repeated: int


class Results(TypedDict):
    schema: NotRequired[Literal["", "note", "block"]]
    hidden: NotRequired[Literal["", "remove", "show"]]
    secrets: NotRequired[bool]
    personal: NotRequired[bool]
    tracebacks: NotRequired[bool]
    max_bytes: NotRequired[int | None]
    links: NotRequired[bool]
    hosts: NotRequired[str]
    marking: NotRequired[Literal["", "found", "all"]]
    patterns: NotRequired[str]


class ResultsBody(TypedDict):
    schema: NotRequired[Literal["", "note", "block"]]
    hidden: NotRequired[Literal["", "remove", "show"]]
    secrets: NotRequired[bool]
    personal: NotRequired[bool]
    tracebacks: NotRequired[bool]
    max_bytes: NotRequired[int | None]
    links: NotRequired[bool]
    hosts: NotRequired[str]
    marking: NotRequired[Literal["", "found", "all"]]
    patterns: NotRequired[str]


class Review(TypedDict):
    kind: Literal["tool", "resource", "template", "prompt", "instructions"]
    name: str
    digest: str
    published_version: int | None
    version: int
    is_red: bool
    findings: list[str]
    marks: list[Mark]
    problems: list[str]
    changes: list[Change]
    definition: dict[str, Any]


class ReviewedBody(TypedDict):
    kind: NotRequired[Literal["tool", "resource", "template", "prompt", "instructions"]]
    name: str
    digest: str


class Reviews(TypedDict):
    items: list[Review]
    waiting: int


class Rule(TypedDict):
    name: str
    mode: NotRequired[Literal["enforce", "shadow", "off"]]
    server: NotRequired[str]
    tool: NotRequired[str]
    hint: NotRequired[Literal["", "destructive", "writes", "open_world"]]
    agents: NotRequired[list[str]]
    owner_groups: NotRequired[list[str]]
    reason: NotRequired[str]
    effect: Literal["allow", "ask", "deny"]
    when: NotRequired[str]
    instead: NotRequired[str]
    unnamed: NotRequired[bool]
    thresholds: NotRequired[list[Threshold]]
    decide_within: NotRequired[int | None]
    start_within: NotRequired[int | None]
    confirm_grants: NotRequired[bool]
    shows_arguments: NotRequired[bool]
    results: NotRequired[Results]
    id: int
    position: int


class RuleBody(TypedDict):
    name: str
    mode: NotRequired[Literal["enforce", "shadow", "off"]]
    server: NotRequired[str]
    tool: NotRequired[str]
    hint: NotRequired[Literal["", "destructive", "writes", "open_world"]]
    agents: NotRequired[list[str]]
    owner_groups: NotRequired[list[str]]
    reason: NotRequired[str]
    effect: Literal["allow", "ask", "deny"]
    when: NotRequired[str]
    instead: NotRequired[str]
    unnamed: NotRequired[bool]
    thresholds: NotRequired[list[ThresholdBody]]
    decide_within: NotRequired[int | None]
    start_within: NotRequired[int | None]
    confirm_grants: NotRequired[bool]
    shows_arguments: NotRequired[bool]
    results: NotRequired[ResultsBody]


class SecretWebhook(TypedDict):
    id: str
    name: str
    format: Literal["standard", "slack", "slack_app", "teams", "mattermost", "discord", "telegram"]
    url: str
    language: Literal["en", "zh-hans"]
    events: list[str]
    enabled: bool
    created_at: str
    created_by: str | None
    secret: str | None


class Server(TypedDict):
    name: str
    title: str
    transport: Literal["http", "stdio", "api"]
    address: str
    owner: str
    enabled: bool
    relays: list[Literal["elicitation", "roots", "sampling"]]
    wanted_revision: Literal[
        "", "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"
    ]
    health: Literal["unknown", "ok", "down"]
    health_since: str | None
    revision: str
    discovered_at: str | None


class ServerBody(TypedDict):
    url: NotRequired[str]
    command: NotRequired[str]
    credential: NotRequired[str]
    headers: NotRequired[dict[str, str]]
    name: str
    title: NotRequired[str]


class SignIn(TypedDict):
    mode: Literal[
        "",
        "oauth",
        "oauth-person",
        "key-person",
        "oauth-team",
        "key-team",
        "oauth-agent",
        "key-agent",
    ]
    client_id: str
    registration: Literal["", "given", "document", "dynamic"]
    has_client_secret: bool
    issuer: str
    scopes: list[str]
    header: str
    redirect_uri: str


class SignInBody(TypedDict):
    mode: Literal[
        "",
        "oauth",
        "oauth-person",
        "key-person",
        "oauth-team",
        "key-team",
        "oauth-agent",
        "key-agent",
    ]
    client_id: NotRequired[str]
    client_secret: NotRequired[str]
    scopes: NotRequired[list[str]]
    header: NotRequired[str]


class Signature(TypedDict):
    identity: str
    issuer: str
    is_publishers: bool
    about: Literal["server.json", "package"]
    digest: str
    predicate: str | None
    at: str
    is_log_time: bool
    log_index: str


class SignatureBody(TypedDict):
    bundle: dict[str, Any]
    server_json_text: NotRequired[str]


class StandingApproval(TypedDict):
    id: int
    agent: str
    tool: str
    owner: str
    state: Literal["in_force", "suspended", "used_up", "expired", "revoked"]
    uses: int
    max_uses: int
    created_at: str
    expires_at: str
    revoked_at: str | None
    note: str


class Step(TypedDict):
    since: str
    until: str
    calls: int
    outcomes: Outcomes
    p50: float | None
    p95: float | None


class Stop(TypedDict):
    id: int
    agent: str | None
    server: str | None
    reason: str
    began_by: str
    began_by_account: str | None
    began_at: str
    ended_by: str | None
    ended_by_account: str | None
    ended_at: str | None
    ended_why: str


class StopBody(TypedDict):
    agent: NotRequired[str]
    server: NotRequired[str]
    everything: NotRequired[bool]
    reason: str


class Tags(TypedDict):
    tags: list[str]


class TagsBody(TypedDict):
    tags: list[str]


Threshold = TypedDict(
    "Threshold",
    {
        "approve": int,
        "deny": NotRequired[int],
        "distinct": NotRequired[Literal["person", "team"]],
        "step_up": NotRequired[Literal["", "totp", "passkey"]],
        "after_min": NotRequired[int],
        "from": NotRequired[str],
    },
)


ThresholdBody = TypedDict(
    "ThresholdBody",
    {
        "approve": int,
        "deny": NotRequired[int],
        "distinct": NotRequired[Literal["person", "team"]],
        "step_up": NotRequired[Literal["", "totp", "passkey"]],
        "after_min": NotRequired[int],
        "from": NotRequired[str],
    },
)


class Token(TypedDict):
    id: str
    created_at: str
    created_by: str | None
    expires_at: str
    revoked_at: str | None
    last_used_at: str | None
    last_address: str | None
    toolsets: list[str]
    reads_only: bool


class TokenBody(TypedDict):
    days: NotRequired[int]
    toolsets: NotRequired[list[str]]
    reads_only: NotRequired[bool]


class Tool(TypedDict):
    name: str
    server: str
    upstream_name: str
    state: Literal["new", "published", "changed", "retired"]


class ToolList(TypedDict):
    toolset: str
    format: Literal["mcp", "openai", "anthropic", "gemini", "json-schema"]
    digest: str
    tools: list[dict[str, Any]]
    losses: list[Loss]


class ToolUsage(TypedDict):
    tool: str
    calls: int
    error_percent: float
    p50: float | None
    p95: float | None
    days: list[Day]
    callers: list[Caller]


class Toolset(TypedDict):
    name: str
    title: str
    servers: list[str]
    tools: list[str]
    agents: list[str]
    separator: Literal["_", "-", "."]
    search_mode: bool
    own_tools: list[
        Literal["await_call", "get_call", "cancel_call", "my_waiting_calls", "justify", "explain"]
    ]
    hold_seconds: int | None
    agent_sign_in: bool
    registry_readers: Literal["none", "tokens", "anyone"]


class ToolsetBody(TypedDict):
    name: str
    title: NotRequired[str]


class Top(TypedDict):
    name: str
    calls: int
    error_percent: float | None
    p95: float | None


class Usage(TypedDict):
    range: Literal["1h", "24h", "7d", "30d", "90d"]
    calls: int
    calls_before: int
    outcomes: Outcomes
    error_percent: float | None
    p50: float | None
    p95: float | None
    is_sampled: bool
    steps: list[Step]
    tools: list[Top]
    agents: list[Top]
    servers: list[Top]


class User(TypedDict):
    name: str
    display_name: str
    enabled: bool
    groups: list[str]
    has_second_factor: bool
    invited_by: str | None
    joined_at: str
    last_signed_in_at: str | None


class Vouching(TypedDict):
    origin: Origin | None
    review: LastReview | None
    signature: Signature | None


class Webhook(TypedDict):
    id: str
    name: str
    format: Literal["standard", "slack", "slack_app", "teams", "mattermost", "discord", "telegram"]
    url: str
    language: Literal["en", "zh-hans"]
    events: list[str]
    enabled: bool
    created_at: str
    created_by: str | None


class WebhookBody(TypedDict):
    name: str
    url: str
    language: NotRequired[Literal["en", "zh-hans"]]
    events: NotRequired[
        list[
            Literal[
                "approval.needed",
                "approval.reminder",
                "approval.decided",
                "approval.expired",
                "approval.withdrawn",
                "call.outcome_unknown",
                "definition.review_needed",
                "server.unreachable",
                "server.reachable",
                "on_call_calendar.failed",
                "on_call_calendar.recovered",
                "token.expiring",
                "limit.reached",
                "agent.unusual",
                "audit.verification_failed",
                "backup.failed",
                "emergency_stop.began",
                "emergency_stop.ended",
                "role.changed",
                "break_glass.used",
            ]
        ]
    ]
    format: NotRequired[Literal["standard", "slack", "teams", "mattermost", "discord", "telegram"]]


class Countersign(Transport):
    """The API of one installation; a method for each operation."""

    def list_agents(self) -> Iterator[Agent]:
        return self._pages("/api/v1/agents", {})

    def create_agent(self, body: AgentBody, *, idempotency_key: str = "") -> Agent:
        found: Agent = self.send("POST", "/api/v1/agents", body=body, key=idempotency_key).json()
        return found

    def get_agent(self, name: str) -> Versioned[Agent]:
        reply = self.send("GET", f"/api/v1/agents/{_place(name)}")
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def update_agent(self, name: str, body: AgentChange, *, etag: str) -> Versioned[Agent]:
        reply = self.send("PATCH", f"/api/v1/agents/{_place(name)}", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def list_tokens(self, name: str) -> Iterator[Token]:
        return self._pages(f"/api/v1/agents/{_place(name)}/tokens", {})

    def create_token(self, name: str, body: TokenBody, *, idempotency_key: str = "") -> IssuedToken:
        found: IssuedToken = self.send(
            "POST", f"/api/v1/agents/{_place(name)}/tokens", body=body, key=idempotency_key
        ).json()
        return found

    def revoke_token(
        self, name: str, public_id: str, body: ReasonBody, *, idempotency_key: str = ""
    ) -> Token:
        """At once, whatever became of the token meanwhile."""
        found: Token = self.send(
            "POST",
            f"/api/v1/agents/{_place(name)}/tokens/{_place(public_id)}/revoke",
            body=body,
            key=idempotency_key,
        ).json()
        return found

    def rotate_token(self, name: str, public_id: str, *, idempotency_key: str = "") -> IssuedToken:
        """A new token with the same lifetime; the old one works for one more hour."""
        found: IssuedToken = self.send(
            "POST",
            f"/api/v1/agents/{_place(name)}/tokens/{_place(public_id)}/rotate",
            body={},
            key=idempotency_key,
        ).json()
        return found

    def get_agent_usage(
        self, name: str, *, range: Literal["1h", "24h", "7d", "30d", "90d"] | None = None
    ) -> Usage:
        """Figures of one agent's calls."""
        found: Usage = self.send(
            "GET", f"/api/v1/agents/{_place(name)}/usage", query={"range": range}
        ).json()
        return found

    def create_api_server(self, body: ApiServerBody, *, idempotency_key: str = "") -> Server:
        """Registers an HTTP API by its document. It offers nothing before operations are chosen."""
        found: Server = self.send(
            "POST", "/api/v1/api-servers", body=body, key=idempotency_key
        ).json()
        return found

    def list_approvals(self) -> Iterator[Approval]:
        """The pending ones, the oldest first; to read alone."""
        return self._pages("/api/v1/approvals", {})

    def list_calls(
        self,
        *,
        agent: str | None = None,
        state: Literal[
            "refused",
            "invalid",
            "held",
            "approved",
            "queued",
            "running",
            "succeeded",
            "tool_error",
            "failed",
            "timed_out",
            "cancelled",
            "unknown",
            "denied",
            "expired",
            "withdrawn",
            "superseded",
            "resolved",
        ]
        | None = None,
        tool: str | None = None,
    ) -> Iterator[Call]:
        """The newest first."""
        return self._pages("/api/v1/calls", {"agent": agent, "state": state, "tool": tool})

    def get_call(self, call_id: str) -> Call:
        found: Call = self.send("GET", f"/api/v1/calls/{_place(call_id)}").json()
        return found

    def cancel_call(self, call_id: str, *, idempotency_key: str = "") -> Call:
        """Cancels a queued or running call. A pending one is for people to deny."""
        found: Call = self.send(
            "POST", f"/api/v1/calls/{_place(call_id)}/cancel", body={}, key=idempotency_key
        ).json()
        return found

    def list_emergency_stops(self) -> Iterator[Stop]:
        """The newest first."""
        return self._pages("/api/v1/emergency-stops", {})

    def create_emergency_stop(self, body: StopBody, *, idempotency_key: str = "") -> Stop:
        """The newest first."""
        found: Stop = self.send(
            "POST", "/api/v1/emergency-stops", body=body, key=idempotency_key
        ).json()
        return found

    def get_emergency_stop(self, id: int) -> Stop:
        found: Stop = self.send("GET", f"/api/v1/emergency-stops/{_place(id)}").json()
        return found

    def end_emergency_stop(self, id: int, body: EndBody, *, idempotency_key: str = "") -> Stop:
        """By somebody else than who began it, with a reason."""
        found: Stop = self.send(
            "POST", f"/api/v1/emergency-stops/{_place(id)}/end", body=body, key=idempotency_key
        ).json()
        return found

    def list_entries(
        self,
        *,
        action: str | None = None,
        agent: str | None = None,
        behalf: str | None = None,
        call: str | None = None,
        decision: str | None = None,
        person: str | None = None,
        range: Literal["1h", "24h", "7d", "30d", "today", "yesterday"] | None = None,
        rule: str | None = None,
        server: str | None = None,
        since: str | None = None,
        state: str | None = None,
        tool: str | None = None,
        until: str | None = None,
        version: str | None = None,
    ) -> Iterator[Entry]:
        """The newest first, with the filters of the audit log's address."""
        return self._pages(
            "/api/v1/entries",
            {
                "action": action,
                "agent": agent,
                "behalf": behalf,
                "call": call,
                "decision": decision,
                "person": person,
                "range": range,
                "rule": rule,
                "server": server,
                "since": since,
                "state": state,
                "tool": tool,
                "until": until,
                "version": version,
            },
        )

    def list_exports(self) -> Iterator[Export]:
        """The newest first."""
        return self._pages("/api/v1/exports", {})

    def create_export(self, body: ExportBody, *, idempotency_key: str = "") -> Export:
        """The newest first."""
        found: Export = self.send("POST", "/api/v1/exports", body=body, key=idempotency_key).json()
        return found

    def get_export(self, id: int) -> Export:
        found: Export = self.send("GET", f"/api/v1/exports/{_place(id)}").json()
        return found

    def cancel_export(self, id: int, *, idempotency_key: str = "") -> Export:
        """Cancels an export in the background; deletes one that is ready."""
        found: Export = self.send(
            "POST", f"/api/v1/exports/{_place(id)}/cancel", body={}, key=idempotency_key
        ).json()
        return found

    def get_export_file(self, id: int) -> bytes:
        """The file. One in the background is ready once its state says so, and any range of its
        bytes is downloaded; a direct one is written as it is read."""
        return self.send("GET", f"/api/v1/exports/{_place(id)}/file").body

    def get_failed_messages(self) -> FailedMessages:
        """Numbers of messages that were given up, of the newest 10,000: to each webhook, and to
        users by mail and on their devices."""
        found: FailedMessages = self.send("GET", "/api/v1/failed-messages").json()
        return found

    def repeat_messages(self, body: ChannelBody, *, idempotency_key: str = "") -> Repeated:
        """Sends again all messages by mail, or all to devices, that were given up; under the
        same ids."""
        found: Repeated = self.send(
            "POST", "/api/v1/failed-messages/repeat", body=body, key=idempotency_key
        ).json()
        return found

    def get_health(self) -> Health:
        """Pending approvals, unresolved outcomes, stops and unreachable servers at this moment."""
        found: Health = self.send("GET", "/api/v1/health").json()
        return found

    def create_imported_server(self, body: ImportBody, *, idempotency_key: str = "") -> Server:
        """Registers a server by its server.json. What it offers waits for the ordinary review."""
        found: Server = self.send(
            "POST", "/api/v1/imported-servers", body=body, key=idempotency_key
        ).json()
        return found

    def list_limits(self) -> Iterator[Limit]:
        return self._pages("/api/v1/limits", {})

    def create_limit(self, body: LimitBody, *, idempotency_key: str = "") -> NoticedLimit:
        found: NoticedLimit = self.send(
            "POST", "/api/v1/limits", body=body, key=idempotency_key
        ).json()
        return found

    def get_limit(self, id: int) -> Versioned[NoticedLimit]:
        reply = self.send("GET", f"/api/v1/limits/{_place(id)}")
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def update_limit(self, id: int, body: LimitChange, *, etag: str) -> Versioned[NoticedLimit]:
        reply = self.send("PATCH", f"/api/v1/limits/{_place(id)}", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def delete_limit(self, id: int, *, etag: str) -> None:
        self.send("DELETE", f"/api/v1/limits/{_place(id)}", etag=etag)

    def get_me(self) -> Me:
        """The account, and what the token opens at this moment."""
        found: Me = self.send("GET", "/api/v1/me").json()
        return found

    def list_on_call_schedules(self) -> Iterator[OnCallSchedule]:
        """Users who are on call in turn, or as a calendar says."""
        return self._pages("/api/v1/on-call-schedules", {})

    def create_on_call_schedule(
        self, body: OnCallScheduleBody, *, idempotency_key: str = ""
    ) -> OnCallSchedule:
        """Users who are on call in turn, or as a calendar says."""
        found: OnCallSchedule = self.send(
            "POST", "/api/v1/on-call-schedules", body=body, key=idempotency_key
        ).json()
        return found

    def get_on_call_schedule(self, schedule: str) -> Versioned[OnCallSchedule]:
        reply = self.send("GET", f"/api/v1/on-call-schedules/{_place(schedule)}")
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def update_on_call_schedule(
        self, schedule: str, body: OnCallScheduleChange, *, etag: str
    ) -> Versioned[OnCallSchedule]:
        reply = self.send(
            "PATCH", f"/api/v1/on-call-schedules/{_place(schedule)}", body=body, etag=etag
        )
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def delete_on_call_schedule(self, schedule: str, *, etag: str) -> None:
        self.send("DELETE", f"/api/v1/on-call-schedules/{_place(schedule)}", etag=etag)

    def list_on_call_overrides(self, schedule: str) -> Iterator[OnCallOverride]:
        """Users who are on call for a time, the newest first: of several that one counts."""
        return self._pages(f"/api/v1/on-call-schedules/{_place(schedule)}/overrides", {})

    def create_on_call_override(
        self, schedule: str, body: OnCallOverrideBody, *, idempotency_key: str = ""
    ) -> OnCallOverride:
        """Users who are on call for a time, the newest first: of several that one counts."""
        found: OnCallOverride = self.send(
            "POST",
            f"/api/v1/on-call-schedules/{_place(schedule)}/overrides",
            body=body,
            key=idempotency_key,
        ).json()
        return found

    def get_on_call_override(self, schedule: str, override: str) -> Versioned[OnCallOverride]:
        """It is not changed: a newer one counts."""
        reply = self.send(
            "GET", f"/api/v1/on-call-schedules/{_place(schedule)}/overrides/{_place(override)}"
        )
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def delete_on_call_override(self, schedule: str, override: str, *, etag: str) -> None:
        """It is not changed: a newer one counts."""
        self.send(
            "DELETE",
            f"/api/v1/on-call-schedules/{_place(schedule)}/overrides/{_place(override)}",
            etag=etag,
        )

    def create_policy_difference(self, body: FileBody) -> PolicyDifference:
        """Changes that a file would make. Nothing is kept. What changes shows what is there:
        that takes what an export takes."""
        found: PolicyDifference = self.send("POST", "/api/v1/policy/difference", body=body).json()
        return found

    def get_policy_export(self) -> PolicyExport:
        """All that a policy file can have, as it is now, as YAML."""
        found: PolicyExport = self.send("GET", "/api/v1/policy/export").json()
        return found

    def list_policy_plans(self) -> Iterator[Plan]:
        """Plans, the newest first, and a new one. 204: the file changes nothing."""
        return self._pages("/api/v1/policy/plans", {})

    def create_policy_plan(self, body: PlanBody, *, idempotency_key: str = "") -> Plan | None:
        """Plans, the newest first, and a new one. 204: the file changes nothing."""
        found: Plan | None = self.send(
            "POST", "/api/v1/policy/plans", body=body, key=idempotency_key
        ).json()
        return found

    def get_policy_plan(self, digest: str) -> Plan:
        found: Plan = self.send("GET", f"/api/v1/policy/plans/{_place(digest)}").json()
        return found

    def apply_policy_plan(self, digest: str) -> Plan:
        """A plan that people confirmed, once and as a whole. 409 says why not."""
        found: Plan = self.send(
            "POST", f"/api/v1/policy/plans/{_place(digest)}/apply", body={}
        ).json()
        return found

    def get_policy_schema(self) -> dict[str, Any]:
        """The JSON Schema of policy files."""
        found: dict[str, Any] = self.send("GET", "/api/v1/policy/schema.json").json()
        return found

    def list_rules(self) -> Iterator[Rule]:
        """In no order: `position` has that."""
        return self._pages("/api/v1/rules", {})

    def create_rule(self, body: RuleBody, *, idempotency_key: str = "") -> Rule:
        """In no order: `position` has that."""
        found: Rule = self.send("POST", "/api/v1/rules", body=body, key=idempotency_key).json()
        return found

    def get_rule(self, id: int) -> Versioned[Rule]:
        reply = self.send("GET", f"/api/v1/rules/{_place(id)}")
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def update_rule(self, id: int, body: RuleChange, *, etag: str) -> Versioned[Rule]:
        reply = self.send("PATCH", f"/api/v1/rules/{_place(id)}", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def delete_rule(self, id: int, *, etag: str) -> None:
        self.send("DELETE", f"/api/v1/rules/{_place(id)}", etag=etag)

    def get_rule_usage(
        self, id: int, *, range: Literal["1h", "24h", "7d", "30d", "90d"] | None = None
    ) -> Usage:
        """Figures of the calls that one rule decided."""
        found: Usage = self.send(
            "GET", f"/api/v1/rules/{_place(id)}/usage", query={"range": range}
        ).json()
        return found

    def list_servers(self) -> Iterator[Server]:
        """Servers, and a new one. Discovery is asked for separately, and nothing of it is
        published."""
        return self._pages("/api/v1/servers", {})

    def create_server(self, body: ServerBody, *, idempotency_key: str = "") -> Server:
        """Servers, and a new one. Discovery is asked for separately, and nothing of it is
        published."""
        found: Server = self.send("POST", "/api/v1/servers", body=body, key=idempotency_key).json()
        return found

    def get_server(self, slug: str) -> Versioned[Server]:
        reply = self.send("GET", f"/api/v1/servers/{_place(slug)}")
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def update_server(self, slug: str, body: ServerChange, *, etag: str) -> Versioned[Server]:
        reply = self.send("PATCH", f"/api/v1/servers/{_place(slug)}", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def delete_server(self, slug: str, *, etag: str) -> None:
        self.send("DELETE", f"/api/v1/servers/{_place(slug)}", etag=etag)

    def set_connection_of_server(
        self, slug: str, body: ConnectionBody, *, etag: str
    ) -> Versioned[Server]:
        """How the server is reached. What it offers at another address waits for a review."""
        reply = self.send("PUT", f"/api/v1/servers/{_place(slug)}/connection", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def list_discoveries(self, slug: str) -> Iterator[Discovery]:
        """Asks the server now what it offers, and waits for the answer."""
        return self._pages(f"/api/v1/servers/{_place(slug)}/discoveries", {})

    def create_discovery(self, slug: str) -> Discovery:
        """Asks the server now what it offers, and waits for the answer."""
        found: Discovery = self.send("POST", f"/api/v1/servers/{_place(slug)}/discoveries").json()
        return found

    def get_api_documents(self, slug: str) -> Versioned[ApiDocument]:
        """A server's document, and what became of each operation. Another document publishes
        nothing: ask for a discovery and review what changed."""
        reply = self.send("GET", f"/api/v1/servers/{_place(slug)}/openapi")
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def set_api_documents(
        self, slug: str, body: DocumentBody, *, etag: str
    ) -> Versioned[ApiDocument]:
        """A server's document, and what became of each operation. Another document publishes
        nothing: ask for a discovery and review what changed."""
        reply = self.send("PUT", f"/api/v1/servers/{_place(slug)}/openapi", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def set_offered_operations(
        self, slug: str, body: OperationsBody, *, etag: str
    ) -> Versioned[ApiDocument]:
        """Exactly these operations are offered from the next discovery on, once published."""
        reply = self.send("PUT", f"/api/v1/servers/{_place(slug)}/operations", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def create_publication(
        self, slug: str, body: PublicationBody, *, idempotency_key: str = ""
    ) -> Published:
        """Publishes the differences that were read: all of them, or none. Red ones are for
        people."""
        found: Published = self.send(
            "POST", f"/api/v1/servers/{_place(slug)}/publications", body=body, key=idempotency_key
        ).json()
        return found

    def get_reviews(self, slug: str) -> Reviews:
        """All that agents do not have yet of a server, with the digests by which it is
        published."""
        found: Reviews = self.send("GET", f"/api/v1/servers/{_place(slug)}/reviews").json()
        return found

    def get_sign_in_of_server(self, slug: str) -> Versioned[SignIn]:
        reply = self.send("GET", f"/api/v1/servers/{_place(slug)}/sign-in")
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def set_sign_in_of_server(self, slug: str, body: SignInBody, *, etag: str) -> Versioned[SignIn]:
        reply = self.send("PUT", f"/api/v1/servers/{_place(slug)}/sign-in", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def set_signature_of_server(
        self, slug: str, body: SignatureBody, *, etag: str
    ) -> Versioned[Vouching]:
        """Verifies a Sigstore bundle for a server that was imported, or removes the one that it
        has."""
        reply = self.send("PUT", f"/api/v1/servers/{_place(slug)}/signature", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def delete_signature_of_server(self, slug: str, *, etag: str) -> None:
        """Verifies a Sigstore bundle for a server that was imported, or removes the one that it
        has."""
        self.send("DELETE", f"/api/v1/servers/{_place(slug)}/signature", etag=etag)

    def get_server_usage(
        self, slug: str, *, range: Literal["1h", "24h", "7d", "30d", "90d"] | None = None
    ) -> Usage:
        """Figures of one server's calls."""
        found: Usage = self.send(
            "GET", f"/api/v1/servers/{_place(slug)}/usage", query={"range": range}
        ).json()
        return found

    def get_who_vouches(self, slug: str) -> Vouching:
        found: Vouching = self.send("GET", f"/api/v1/servers/{_place(slug)}/vouching").json()
        return found

    def list_standing_approvals(self) -> Iterator[StandingApproval]:
        """The newest first, without the arguments that they cover."""
        return self._pages("/api/v1/standing-approvals", {})

    def get_standing_approval(self, id: int) -> StandingApproval:
        found: StandingApproval = self.send(
            "GET", f"/api/v1/standing-approvals/{_place(id)}"
        ).json()
        return found

    def revoke_standing_approval(self, id: int, *, idempotency_key: str = "") -> StandingApproval:
        found: StandingApproval = self.send(
            "POST", f"/api/v1/standing-approvals/{_place(id)}/revoke", body={}, key=idempotency_key
        ).json()
        return found

    def list_tools(self, *, server: str | None = None) -> Iterator[Tool]:
        return self._pages("/api/v1/tools", {"server": server})

    def get_tool(self, tool: str) -> Tool:
        found: Tool = self.send("GET", f"/api/v1/tools/{_place(tool)}").json()
        return found

    def list_definitions(self, tool: str) -> Iterator[Definition]:
        """All that the server ever said of the tool, the newest first."""
        return self._pages(f"/api/v1/tools/{_place(tool)}/definitions", {})

    def get_difference(self, tool: str, *, from_: int, to: int) -> Difference:
        """From one version of a tool's definition to another: `?from=1&to=2`."""
        found: Difference = self.send(
            "GET", f"/api/v1/tools/{_place(tool)}/difference", query={"from": from_, "to": to}
        ).json()
        return found

    def get_tool_handling(self, tool: str) -> Versioned[Handling]:
        """Settings by which the tool's calls are run."""
        reply = self.send("GET", f"/api/v1/tools/{_place(tool)}/handling")
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def update_tool_handling(
        self, tool: str, body: HandlingChange, *, etag: str
    ) -> Versioned[Handling]:
        """Settings by which the tool's calls are run."""
        reply = self.send("PATCH", f"/api/v1/tools/{_place(tool)}/handling", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def get_tool_labels(self, tool: str) -> Versioned[Labels]:
        """The tool's labels for information flow."""
        reply = self.send("GET", f"/api/v1/tools/{_place(tool)}/labels")
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def update_tool_labels(self, tool: str, body: LabelsChange, *, etag: str) -> Versioned[Labels]:
        """The tool's labels for information flow."""
        reply = self.send("PATCH", f"/api/v1/tools/{_place(tool)}/labels", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def get_tool_results(self, tool: str) -> Versioned[Results]:
        """Checks and cleaning of the tool's results. With all of it off, its server's choices
        count."""
        reply = self.send("GET", f"/api/v1/tools/{_place(tool)}/results")
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def update_tool_results(
        self, tool: str, body: ResultsChange, *, etag: str
    ) -> Versioned[Results]:
        """Checks and cleaning of the tool's results. With all of it off, its server's choices
        count."""
        reply = self.send("PATCH", f"/api/v1/tools/{_place(tool)}/results", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def get_tool_tags(self, tool: str) -> Versioned[Tags]:
        """The words that people and agents find the tool by; conditions of rules can read them."""
        reply = self.send("GET", f"/api/v1/tools/{_place(tool)}/tags")
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def set_tool_tags(self, tool: str, body: TagsBody, *, etag: str) -> Versioned[Tags]:
        """The words that people and agents find the tool by; conditions of rules can read them."""
        reply = self.send("PUT", f"/api/v1/tools/{_place(tool)}/tags", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def get_tool_usage(self, tool: str) -> ToolUsage:
        """A tool's last 30 days, in UTC."""
        found: ToolUsage = self.send("GET", f"/api/v1/tools/{_place(tool)}/usage").json()
        return found

    def list_toolsets(self) -> Iterator[Toolset]:
        return self._pages("/api/v1/toolsets", {})

    def create_toolset(self, body: ToolsetBody, *, idempotency_key: str = "") -> Toolset:
        found: Toolset = self.send(
            "POST", "/api/v1/toolsets", body=body, key=idempotency_key
        ).json()
        return found

    def get_toolset(self, slug: str) -> Versioned[Toolset]:
        reply = self.send("GET", f"/api/v1/toolsets/{_place(slug)}")
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def update_toolset(self, slug: str, body: ToolsetChange, *, etag: str) -> Versioned[Toolset]:
        reply = self.send("PATCH", f"/api/v1/toolsets/{_place(slug)}", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def get_tools_of_toolset(
        self,
        slug: str,
        *,
        format: Literal["mcp", "openai", "anthropic", "gemini", "json-schema"] | None = None,
    ) -> ToolList:
        """The toolset's published tools as a model's API takes them, with what the format cannot
        say. The version is the digest."""
        found: ToolList = self.send(
            "GET", f"/api/v1/toolsets/{_place(slug)}/tools", query={"format": format}
        ).json()
        return found

    def get_override_of_tool(self, slug: str, tool: str) -> Versioned[Override]:
        """The tool as the toolset shows it: its name for agents, its words, and arguments that
        are fixed for them."""
        reply = self.send("GET", f"/api/v1/toolsets/{_place(slug)}/tools/{_place(tool)}/override")
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def update_override_of_tool(
        self, slug: str, tool: str, body: OverrideChange, *, etag: str
    ) -> Versioned[Override]:
        """The tool as the toolset shows it: its name for agents, its words, and arguments that
        are fixed for them."""
        reply = self.send(
            "PATCH",
            f"/api/v1/toolsets/{_place(slug)}/tools/{_place(tool)}/override",
            body=body,
            etag=etag,
        )
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def get_usage_figures(
        self, *, range: Literal["1h", "24h", "7d", "30d", "90d"] | None = None
    ) -> Usage:
        """Calls of a range by outcome, with durations, and whose they were."""
        found: Usage = self.send("GET", "/api/v1/usage", query={"range": range}).json()
        return found

    def list_users(self) -> Iterator[User]:
        return self._pages("/api/v1/users", {})

    def get_user(self, user: str) -> Versioned[User]:
        """A user. Disabling ends their sessions, tokens, votes on pending calls and open calls."""
        reply = self.send("GET", f"/api/v1/users/{_place(user)}")
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def update_user(self, user: str, body: UserChange, *, etag: str) -> Versioned[User]:
        """A user. Disabling ends their sessions, tokens, votes on pending calls and open calls."""
        reply = self.send("PATCH", f"/api/v1/users/{_place(user)}", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def list_webhooks(self) -> Iterator[Webhook]:
        return self._pages("/api/v1/webhooks", {})

    def create_webhook(self, body: WebhookBody, *, idempotency_key: str = "") -> SecretWebhook:
        found: SecretWebhook = self.send(
            "POST", "/api/v1/webhooks", body=body, key=idempotency_key
        ).json()
        return found

    def get_webhook(self, webhook: str) -> Versioned[Webhook]:
        reply = self.send("GET", f"/api/v1/webhooks/{_place(webhook)}")
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def update_webhook(self, webhook: str, body: WebhookChange, *, etag: str) -> Versioned[Webhook]:
        reply = self.send("PATCH", f"/api/v1/webhooks/{_place(webhook)}", body=body, etag=etag)
        return Versioned(reply.json(), reply.headers.get("ETag", ""))

    def delete_webhook(self, webhook: str, *, etag: str) -> None:
        self.send("DELETE", f"/api/v1/webhooks/{_place(webhook)}", etag=etag)

    def list_webhook_deliveries(
        self, webhook: str, *, state: Literal["pending", "sent", "dropped", "dead"] | None = None
    ) -> Iterator[Delivery]:
        """The newest first."""
        return self._pages(f"/api/v1/webhooks/{_place(webhook)}/deliveries", {"state": state})

    def repeat_delivery(
        self, webhook: str, delivery: str, *, idempotency_key: str = ""
    ) -> Delivery:
        """Sends a message again, under the same id."""
        found: Delivery = self.send(
            "POST",
            f"/api/v1/webhooks/{_place(webhook)}/deliveries/{_place(delivery)}/repeat",
            body={},
            key=idempotency_key,
        ).json()
        return found

    def repeat_deliveries(self, webhook: str, *, idempotency_key: str = "") -> Repeated:
        """Sends again all messages that were given up on their way there, under the same ids."""
        found: Repeated = self.send(
            "POST",
            f"/api/v1/webhooks/{_place(webhook)}/deliveries/repeat",
            body={},
            key=idempotency_key,
        ).json()
        return found

    def rotate_webhook_secret(self, webhook: str, *, idempotency_key: str = "") -> SecretWebhook:
        """A new secret; the old one signs as well for 24 hours. A chat has none."""
        found: SecretWebhook = self.send(
            "POST", f"/api/v1/webhooks/{_place(webhook)}/rotate", body={}, key=idempotency_key
        ).json()
        return found

    def test_webhook(self, webhook: str, *, idempotency_key: str = "") -> Delivery:
        """Sends a test message."""
        found: Delivery = self.send(
            "POST", f"/api/v1/webhooks/{_place(webhook)}/test", body={}, key=idempotency_key
        ).json()
        return found


USAGE = 64  # EX_USAGE: 2 is taken by files that change something.
CHANGES = 2
SHOWN = 50
SHELLS = ("bash", "zsh", "fish")
RANGES = ("1h", "24h", "7d", "30d", "90d")
V1 = "/api/v1"


class CommandFailed(Exception):
    """Said on standard error; the exit code is 1."""


class Profile(NamedTuple):
    """`token_command` prints the token, where the file does not have it."""

    url: str
    token: str = ""
    token_command: str = ""


class Profiles:
    """Installations by name, in a file that only its owner reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.current, self.known = "", dict[str, Profile]()
        if path.exists():
            self._read()

    def _read(self) -> None:
        try:
            read = json.loads(self.path.read_text(encoding="utf-8"))
            self.current = str(read["current"])
            self.known = {name: Profile(**one) for name, one in read["profiles"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CommandFailed(f"{self.path} is no file of profiles: {error}") from error

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        known = {name: one._asdict() for name, one in self.known.items()}
        text = json.dumps({"current": self.current, "profiles": known}, indent=2)
        # Never half of it, and at no moment readable by others.
        handle, name = tempfile.mkstemp(dir=self.path.parent)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        Path(name).replace(self.path)

    def named(self, name: str) -> Profile:
        if name not in self.known:
            known = ", ".join(sorted(self.known)) or "none: countersign profile add NAME URL"
            raise CommandFailed(f"There is no profile {name!r}. Profiles: {known}.")
        return self.known[name]


def profiles_path() -> Path:
    if given := os.environ.get("COUNTERSIGN_PROFILES"):
        return Path(given)
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "countersign" / "profiles.json"


def token_of(profile: Profile) -> str:
    if not profile.token_command:
        return profile.token
    words = shlex.split(profile.token_command)
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 the profile's own
    except (OSError, subprocess.CalledProcessError) as error:
        raise CommandFailed(f"The profile's command for the token failed: {error}") from error
    return done.stdout.strip()


def connect(given: argparse.Namespace) -> Countersign:
    """By --profile, else by the environment, else by the current profile."""
    url, token = os.environ.get("COUNTERSIGN_URL", ""), os.environ.get("COUNTERSIGN_TOKEN", "")
    if not given.profile and bool(url) != bool(token):
        raise CommandFailed("Set both COUNTERSIGN_URL and COUNTERSIGN_TOKEN, or neither.")
    if given.profile or not url:
        profiles = Profiles(profiles_path())
        name = given.profile or profiles.current
        if not name:
            raise CommandFailed(
                "No installation: countersign profile add NAME URL, or set COUNTERSIGN_URL and "
                "COUNTERSIGN_TOKEN."
            )
        profile = profiles.named(name)
        url, token = profile.url, token_of(profile)
    return client_of(url, token)


def client_of(url: str, token: str) -> Countersign:
    try:
        return Countersign(url, token, allow_http=bool(os.environ.get("COUNTERSIGN_ALLOW_HTTP")))
    except ValueError as error:
        raise CommandFailed(str(error)) from error


# What a command prints


class Output:
    """Rows as a table and one row as lines, or all of it as JSON."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def rows(self, rows: Iterable[Mapping[str, Any]], columns: str) -> None:
        """`columns`: names of members, with dots for members of members."""
        found = list(rows)
        if self.as_json:
            self.json(found)
            return
        names = columns.split()
        cells = [[shown(member(row, name)) for name in names] for row in found]
        _table([name.rpartition(".")[2].upper().replace("_", " ") for name in names], cells)

    def row(self, row: Any) -> None:
        if self.as_json or not isinstance(row, Mapping):
            self.json(row)
            return
        width = max((len(name) for name in row), default=0)
        for name, value in row.items():
            print(f"{name:<{width}}  {shown(value)}")

    def text(self, text: str, value: Any) -> None:
        """`value`: the same for programs."""
        if self.as_json:
            self.json(value)
        else:
            print(text)

    def json(self, value: Any) -> None:
        # A terminal obeys no escape sequence of it: JSON writes control characters as \u001b.
        print(json.dumps(value, indent=2, ensure_ascii=False))


def member(row: Mapping[str, Any], name: str) -> Any:
    value: Any = row
    for part in name.split("."):
        value = value[part]
    return value


def shown(value: Any) -> str:
    """On one line, without characters that a terminal obeys or hides."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case list() if all(isinstance(one, str) for one in value):
            value = ", ".join(value) or "–"
        case list() | dict():
            value = json.dumps(value, ensure_ascii=False)
    return "".join(one if _is_plain(one) else f"\\u{ord(one):04x}" for one in str(value))


def _is_plain(character: str) -> bool:
    return character == " " or unicodedata.category(character)[0] not in "CZ"


def _width(text: str) -> int:
    """In columns: Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def _table(head: list[str], cells: list[list[str]]) -> None:
    lines = [head, *cells]
    widths = [max(_width(line[n]) for line in lines) for n in range(len(head))]
    last = len(head) - 1
    for line in lines:
        padded = (
            text if n == last else text + " " * (widths[n] - _width(text))
            for n, text in enumerate(line)
        )
        print("  ".join(padded))


# Verbs. Each takes the options that were given, the client, and where to write.

Given = argparse.Namespace
Verb = Callable[[Given, Countersign, Output], int | None]


def show_me(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.get_me())


def show_health(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.get_health())


def show_usage(given: Given, api: Countersign, out: Output) -> None:
    if given.tool:
        of_tool = api.get_tool_usage(given.tool)
        out.row(of_tool) if out.as_json else out.rows(of_tool["days"], DAYS)
        return
    found = _usage(given, api)
    if out.as_json:
        out.row(found)
        return
    out.row({name: found[name] for name in FIGURES})  # type: ignore[literal-required]
    for part in ("tools", "agents", "servers"):
        rows: Any = dict(found)[part]
        if rows:
            print(f"\n{part.capitalize()}")
            out.rows(rows, "name calls error_percent p95")


FIGURES = ("range", "calls", "calls_before", "outcomes", "error_percent", "p50", "p95")
DAYS = "day calls error_share p50 p95"


def _usage(given: Given, api: Countersign) -> Usage:
    if given.agent:
        return api.get_agent_usage(given.agent, range=given.range)
    if given.server:
        return api.get_server_usage(given.server, range=given.range)
    if given.rule:
        return api.get_rule_usage(given.rule, range=given.range)
    return api.get_usage_figures(range=given.range)


def list_servers(given: Given, api: Countersign, out: Output) -> None:
    out.rows(first(api.list_servers(), given), "name health enabled transport address title")


def show_server(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.get_server(given.name).value)


def register_server(given: Given, api: Countersign, out: Output) -> None:
    body: Any = {"name": given.name, "title": given.title}
    body |= {"command": given.command} if given.command else {"url": given.url}
    if given.credential:
        body["credential"] = secret("Credential of the server: ")
    out.row(api.create_server(body))


def discover_server(given: Given, api: Countersign, out: Output) -> int:
    found = api.create_discovery(given.name)
    out.row(found)
    return 0 if found["succeeded"] else 1


def review_server(given: Given, api: Countersign, out: Output) -> None:
    found = api.get_reviews(given.name)
    if out.as_json:
        out.json(found)
        return
    for one in found["items"]:
        red = "  RED: publish it in the console" if one["is_red"] else ""
        print(f"{shown(one['name'])}={one['digest']}{red}")
        for finding in (*one["findings"], *one["problems"]):
            print(f"  finding: {shown(finding)}")
        for change in one["changes"]:
            print(f"  {change['kind']}: {shown(change['what'])} {shown(change['name'])}")
            print(f"    - {shown(change['before'])}\n    + {shown(change['after'])}")
        if not one["changes"]:
            print(f"  {shown(one['definition'])}")


def publish_server(given: Given, api: Countersign, out: Output) -> None:
    pairs = [pair(one, at_last=True) for one in given.reviewed]
    reviewed = [{"name": name, "digest": digest} for name, digest in pairs]
    body: Any = {"definitions": reviewed}
    out.row(api.create_publication(given.name, body))


def switch_server(given: Given, api: Countersign, out: Output) -> None:
    body: Any = {"enabled": given.enabled, "reason": given.reason}
    etag = api.get_server(given.name).etag
    out.row(api.update_server(given.name, body, etag=etag).value)


def list_tools(given: Given, api: Countersign, out: Output) -> None:
    out.rows(first(api.list_tools(server=given.server), given), "name state server upstream_name")


def show_tool(given: Given, api: Countersign, out: Output) -> None:
    newest = next(api.list_definitions(given.name), None)
    out.row({**api.get_tool(given.name), "newest": newest})


def list_toolsets(given: Given, api: Countersign, out: Output) -> None:
    out.rows(first(api.list_toolsets(), given), "name servers tools agents search_mode title")


def show_toolset(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.get_toolset(given.name).value)


def create_toolset(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.create_toolset({"name": given.name, "title": given.title}))


def fill_toolset(given: Given, api: Countersign, out: Output) -> None:
    """Reads the toolset again where another changed it at the same moment."""
    for _attempt in range(3):
        value, etag = api.get_toolset(given.name)
        body: Any = {
            part: _filled(dict(value)[part], asked, given.adds)
            for part in ("servers", "tools", "agents")
            if (asked := getattr(given, part))
        }
        if not body:
            raise CommandFailed("Give --tool, --server or --agent.")
        try:
            out.row(api.update_toolset(given.name, body, etag=etag).value)
        except Problem as problem:
            if problem.status != 412:
                raise
        else:
            return
    raise CommandFailed("Others go on changing the toolset. Try again.")


def _filled(present: Any, asked: list[str], adds: bool) -> list[str]:
    return sorted({*present, *asked}) if adds else sorted({*present} - {*asked})


def export_toolset(given: Given, api: Countersign, out: Output) -> None:
    found = api.get_tools_of_toolset(given.name, format=given.format)
    for loss in found["losses"]:
        print(shown(f"{loss['tool']} {loss['path']}: {loss['why']}"), file=sys.stderr)
    out.json(found if out.as_json else found["tools"])


def list_agents(given: Given, api: Countersign, out: Output) -> None:
    out.rows(first(api.list_agents(), given), "name owner enabled requires_dpop created_at")


def create_agent(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.create_agent({"name": given.name, "owner": given.owner}))


def switch_agent(given: Given, api: Countersign, out: Output) -> None:
    body: Any = {"enabled": given.enabled, "reason": given.reason}
    etag = api.get_agent(given.name).etag
    out.row(api.update_agent(given.name, body, etag=etag).value)


def list_tokens(given: Given, api: Countersign, out: Output) -> None:
    columns = "id created_by expires_at revoked_at last_used_at last_address toolsets reads_only"
    out.rows(first(api.list_tokens(given.agent), given), columns)


def issue_token(given: Given, api: Countersign, out: Output) -> None:
    body: Any = {"days": given.days, "toolsets": given.toolset, "reads_only": given.read_only}
    out.row(api.create_token(given.agent, body))


def rotate_token(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.rotate_token(given.agent, given.id))


def revoke_token(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.revoke_token(given.agent, given.id, {"reason": given.reason}))


def list_rules(given: Given, api: Countersign, out: Output) -> None:
    rules = sorted(api.list_rules(), key=lambda rule: rule["position"])
    out.rows(first(rules, given), "id name effect mode server tool when")


def list_limits(given: Given, api: Countersign, out: Output) -> None:
    columns = "id name kind amount period effect mode server tool"
    out.rows(first(api.list_limits(), given), columns)


def export_policy(given: Given, api: Countersign, out: Output) -> None:
    found = api.get_policy_export()
    if given.output:
        _write(Path(given.output), found["policy"].encode())
    elif out.as_json:
        out.json(found)
    else:
        print(found["policy"], end="")


def validate_policy(given: Given, api: Countersign, out: Output) -> None:
    api.create_policy_difference({"proposal": file_text(given.file)})
    out.text("The file is valid.", {"valid": True})


def compare_policy(given: Given, api: Countersign, out: Output) -> int:
    changes = api.create_policy_difference({"proposal": file_text(given.file)})["changes"]
    out.rows(changes, "section kind name members")
    return CHANGES if changes else 0


def plan_policy(given: Given, api: Countersign, out: Output) -> int:
    body: Any = {"proposal": file_text(given.file), "origin": given.origin}
    if given.calls:
        body["calls"] = given.calls
    # Thousands of calls are judged again.
    api.timeout_s = max(api.timeout_s, 180)
    plan = api.create_policy_plan(body)
    if plan is None:
        out.text("The file changes nothing.", None)
        return 0
    if given.markdown:
        _write(Path(given.markdown), plan["markdown"].encode())
    out.text(plan["markdown"], plan)
    return CHANGES


def apply_policy(given: Given, api: Countersign, out: Output) -> None:
    out.text(f"Applied {given.digest}.", api.apply_policy_plan(given.digest))


def show_queue(given: Given, api: Countersign, out: Output) -> None:
    """To read: only a person decides, signed in to the console."""
    columns = "call.id call.agent call.tool call.reason asked_at decide_by call.page"
    out.rows(first(api.list_approvals(), given), columns)


def list_calls(given: Given, api: Countersign, out: Output) -> None:
    calls = api.list_calls(state=given.state, agent=given.agent, tool=given.tool)
    out.rows(first(calls, given), "id state agent tool asked_at reason")


def show_call(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.get_call(given.id))


def cancel_call(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.cancel_call(given.id))


def list_stops(given: Given, api: Countersign, out: Output) -> None:
    columns = "id agent server began_by began_at ended_at reason"
    out.rows(first(api.list_emergency_stops(), given), columns)


def begin_stop(given: Given, api: Countersign, out: Output) -> None:
    body: Any = {"reason": given.reason}
    for name in ("agent", "server", "everything"):
        if asked := getattr(given, name):
            body[name] = asked
    out.row(api.create_emergency_stop(body))


def end_stop(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.end_emergency_stop(given.id, {"why": given.why}))


def list_grants(given: Given, api: Countersign, out: Output) -> None:
    columns = "id agent tool owner state uses max_uses expires_at"
    out.rows(first(api.list_standing_approvals(), given), columns)


def revoke_grant(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.revoke_standing_approval(given.id))


def list_entries(given: Given, api: Countersign, out: Output) -> None:
    # The API says which filters there are.
    entries = api._pages(f"{V1}/entries", dict(pair(one) for one in given.filter))
    out.rows(first(entries, given), "id at actor action agent server tool reason")


def export_entries(given: Given, api: Countersign, out: Output) -> None:
    filters = dict(pair(one) for one in given.filter)
    body: Any = {"format": given.format, "filters": filters, "background": given.background}
    if given.background:
        if not given.output:
            raise CommandFailed("--background needs --output FILE.")
        _check_replaceable(Path(given.output))
    made = api.create_export(body)
    if given.background:
        _download(made["id"], _behind_links(Path(given.output)), api, out)
        return
    file = api.get_export_file(made["id"])
    if given.output:
        _write(Path(given.output), file)
        out.row(dict(made))
    else:
        sys.stdout.buffer.write(file)


def list_exports(given: Given, api: Countersign, out: Output) -> None:
    columns = "id at format state percent rows size expires_at"
    out.rows(first(api.list_exports(), given), columns)


def cancel_export(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.cancel_export(given.id))


def download_export(given: Given, api: Countersign, out: Output) -> None:
    _check_replaceable(Path(given.output))
    _download(given.id, _behind_links(Path(given.output)), api, out)


def _write(file: Path, content: bytes) -> None:
    """All of it, or on a full disk nothing: what had the name before stays."""
    if file.exists() and not file.is_file():
        file.write_bytes(content)
        return
    file = _behind_links(file)
    part = file.with_name(f".countersign-{secrets.token_hex(8)}")
    try:
        with part.open("xb") as made:
            made.write(content)
        if file.exists():
            shutil.copymode(file, part)
        part.replace(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _behind_links(file: Path) -> Path:
    """The file that is written where a symbolic link has the name: the link stays."""
    return Path(os.path.realpath(file))


def _check_replaceable(file: Path) -> None:
    """A finished download takes the place of what has its name: of a file, and not of a device."""
    if file.exists() and not file.is_file():
        raise CommandFailed(f"{file} is no regular file.")


def _download(number: int, file: Path, api: Countersign, out: Output) -> None:
    """Waits until it is prepared; what was downloaded before a cut line or an end stays."""
    while (made := api.get_export(number))["state"] in ("waiting", "preparing"):
        said = f"export {number}: {made['state']}, {made['percent']} %, {made['rows']} entries"
        print(said, file=sys.stderr)
        time.sleep(2)
    if made["state"] != "ready":
        raise CommandFailed(
            f"Export {number} is not ready: {made['state']} {made['fault']}".strip()
        )
    part = file.with_name(f"{file.name}.part")
    try:
        api.download(made["file"], part, digest=made["digest"])
    except ValueError as error:
        part.unlink()
        raise CommandFailed(str(error)) from error
    part.replace(file)
    out.row(dict(made))


def list_users(given: Given, api: Countersign, out: Output) -> None:
    columns = "name enabled groups has_second_factor invited_by last_signed_in_at"
    out.rows(first(api.list_users(), given), columns)


def disable_user(given: Given, api: Countersign, out: Output) -> None:
    body: Any = {"enabled": False, "reason": given.reason}
    etag = api.get_user(given.name).etag
    out.row(api.update_user(given.name, body, etag=etag).value)


def list_webhooks(given: Given, api: Countersign, out: Output) -> None:
    out.rows(first(api.list_webhooks(), given), "name format enabled url events")


def add_webhook(given: Given, api: Countersign, out: Output) -> None:
    url = given.url or secret("Address of the chat: ")
    body: Any = {"name": given.name, "url": url, "format": given.format, "events": given.event}
    out.row(api.create_webhook(body))


def switch_webhook(given: Given, api: Countersign, out: Output) -> None:
    there = _webhook(api, given.name)
    body: Any = {"enabled": given.enabled}
    out.row(api.update_webhook(there, body, etag=api.get_webhook(there).etag).value)


def test_webhook(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.test_webhook(_webhook(api, given.name)))


def remove_webhook(given: Given, api: Countersign, out: Output) -> None:
    there = _webhook(api, given.name)
    api.delete_webhook(there, etag=api.get_webhook(there).etag)
    out.text("Removed.", None)


def list_deliveries(given: Given, api: Countersign, out: Output) -> None:
    found = api.list_webhook_deliveries(_webhook(api, given.name), state=given.state)
    out.rows(first(found, given), "id event state attempts created_at error")


def _webhook(api: Countersign, name: str) -> str:
    found = next((one["id"] for one in api.list_webhooks() if one["name"] == name), "")
    if not found:
        raise CommandFailed(f"There is no webhook {name!r}.")
    return found


def send_again(given: Given, api: Countersign, out: Output) -> None:
    if given.receiver in ("email", "push"):
        body: Any = {"channel": given.receiver}
        out.row(api.repeat_messages(body))
    else:
        out.row(api.repeat_deliveries(_webhook(api, given.receiver)))


def list_schedules(given: Given, api: Countersign, out: Output) -> None:
    columns = "name on_call people time_zone handover_day handover_at calendar_url"
    out.rows(first(api.list_on_call_schedules(), given), columns)


def list_overrides(given: Given, api: Countersign, out: Output) -> None:
    found = api.list_on_call_overrides(_schedule(api, given.name))
    out.rows(first(found, given), "id person begins_at ends_at")


def add_override(given: Given, api: Countersign, out: Output) -> None:
    body: Any = {"person": given.person, "begins_at": given.begins, "ends_at": given.ends}
    out.row(api.create_on_call_override(_schedule(api, given.name), body))


def remove_override(given: Given, api: Countersign, out: Output) -> None:
    there = _schedule(api, given.name)
    etag = api.get_on_call_override(there, given.id).etag
    api.delete_on_call_override(there, given.id, etag=etag)
    out.text("Removed.", None)


def _schedule(api: Countersign, name: str) -> str:
    found = next((one["id"] for one in api.list_on_call_schedules() if one["name"] == name), "")
    if not found:
        raise CommandFailed(f"There is no on-call schedule {name!r}.")
    return found


def send_raw(given: Given, api: Countersign, out: Output) -> None:
    text = sys.stdin.read() if given.data == "-" else given.data
    try:
        body = json.loads(text) if text else None
    except ValueError as error:
        raise CommandFailed(f"--data is not JSON: {error}") from error
    path = given.path if given.path.startswith("/") else f"{V1}/{given.path}"
    method = given.method.upper()
    body = {} if body is None and method == "POST" else body
    etag = given.if_match
    if method in ("PATCH", "PUT", "DELETE") and not etag:
        etag = api.send("GET", _with_version(path)).headers.get("ETag", "")
    reply = api.send(method, path, body=body, etag=etag, key="" if method == "POST" else None)
    out.json(reply.json())


def _with_version(path: str) -> str:
    """The address that tells the version of what stands at this one."""
    kept, _, last = path.rpartition("/")
    known = {"connection": kept, "operations": f"{kept}/openapi"}
    return known.get(last, path) if "/servers/" in kept else path


# Profiles


def add_profile(given: Given) -> None:
    if not given.name.strip():
        raise CommandFailed("A profile needs a name.")
    profiles = Profiles(profiles_path())
    token = "" if given.token_command else secret("Token (css_…): ")
    profile = Profile(given.url.rstrip("/"), token, given.token_command)
    api = client_of(profile.url, "" if given.unchecked else token_of(profile))
    if not given.unchecked:
        me = api.get_me()
        print(f"{shown(me['name'])}: {len(me['permissions'])} permissions, {me['expires_at']}")
    profiles.known[given.name] = profile
    profiles.current = profiles.current or given.name
    profiles.save()


def list_profiles(given: Given) -> None:
    profiles = Profiles(profiles_path())
    rows = [
        {"name": name, "url": one.url, "current": name == profiles.current}
        for name, one in sorted(profiles.known.items())
    ]
    Output(given.json).rows(rows, "name url current")


def use_profile(given: Given) -> None:
    profiles = Profiles(profiles_path())
    profiles.named(given.name)
    profiles.current = given.name
    profiles.save()


def remove_profile(given: Given) -> None:
    profiles = Profiles(profiles_path())
    profiles.named(given.name)
    del profiles.known[given.name]
    if profiles.current == given.name:
        profiles.current = ""
    profiles.save()


# Completion

COMPLETIONS = {
    "bash": """\
_countersign() {
  mapfile -t COMPREPLY < <(countersign completion words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _countersign countersign
""",
    "zsh": """\
#compdef countersign
_countersign() {
  local -a found
  found=("${(@f)$(countersign completion words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -- $found; else _files; fi
}
compdef _countersign countersign
""",
    "fish": """\
function __countersign
  set -l found (commandline -opc)[2..-1] (commandline -ct)
  countersign completion words $found 2>/dev/null
end
complete -c countersign -a '(__countersign)'
""",
}


def print_completion(given: Given) -> None:
    if given.shell == "words":
        for word in completed(given.words):
            print(word)
    else:
        print(COMPLETIONS[given.shell], end="")


def completed(words: Sequence[str]) -> Iterator[str]:
    """What the last word may become, after those before it."""
    parser: argparse.ArgumentParser = make_parser()
    *before, begun = words or [""]
    for word in before:
        parser = _commands(parser).get(word, parser)
    found = [*_commands(parser), *_values(parser, before[-1:])]
    if begun.startswith("-") or not found:
        found += [one for action in parser._actions for one in action.option_strings]
    yield from (one for one in found if one.startswith(begun))


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _values(parser: argparse.ArgumentParser, last: Sequence[str]) -> list[str]:
    """The choices of the option before, or of an argument."""
    for action in parser._actions:
        is_it = not action.option_strings or bool({*last} & {*action.option_strings})
        if action.choices and is_it and not isinstance(action, argparse._SubParsersAction):
            return [str(one) for one in action.choices]
    return []


# Helpers of verbs


def first(rows: Iterable[Any], given: Given) -> Iterator[Any]:
    return islice(rows, given.limit)


def pair(text: str, *, at_last: bool = False) -> tuple[str, str]:
    """NAME=VALUE: at the first sign, or at the last one where names may have it."""
    name, sign, value = text.rpartition("=") if at_last else text.partition("=")
    if not (name and sign):
        raise CommandFailed(f"{text!r} is not NAME=VALUE.")
    return name, value


def secret(prompt: str) -> str:
    """Typed without an echo, or a line of standard input: never an argument, which others see."""
    if sys.stdin.isatty():
        return getpass.getpass(prompt).strip()
    return sys.stdin.readline().strip()


def file_text(name: str) -> str:
    return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")


# The parser


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


class Group:
    """Commands below one word."""

    def __init__(self, under: Any, name: str, about: str) -> None:
        parser = under.add_parser(name, help=about, description=about)
        self.verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND")

    def add(self, name: str, about: str, verb: Any, *names: str, **fixed: Any) -> Any:
        """`names`: of its arguments. `fixed`: options that it does not ask for."""
        return _add(self.verbs, name, about, verb, *names, **fixed)

    def listing(self, about: str, verb: Any, *names: str) -> Any:
        return _listed(self.add("list", about, verb, *names))


def _add(under: Any, name: str, about: str, verb: Any, *names: str, **fixed: Any) -> Any:
    parser = under.add_parser(name, help=about, description=about)
    _common(parser, argparse.SUPPRESS)
    for one in names:
        parser.add_argument(one, metavar=one.upper())
    parser.set_defaults(run=verb, **fixed)
    return parser


def _listed(parser: Any) -> Any:
    parser.add_argument("--limit", type=int, default=SHOWN, metavar="N", help="rows at most")
    return parser


def _common(parser: Any, default: Any) -> None:
    """Options of every command, before and after its words."""
    parser.add_argument("--json", action="store_true", default=default, help="for programs")
    parser.add_argument("--profile", default=default, metavar="NAME", help="not the current one")


def make_parser() -> Parser:
    parser = Parser(prog="countersign", description="Countersign by its API.")
    _common(parser, None)
    under = parser.add_subparsers(dest="group", required=True, metavar="COMMAND")
    for add in (_of_profiles, _of_registry, _of_agents, _of_policy, _of_calls, _of_record):
        add(under)
    raw = _add(under, "api", "One request, as it is", send_raw, "method", "path")
    raw.add_argument("--data", default="", help="the body as JSON; - for standard input")
    raw.add_argument("--if-match", default="", help="the version; without, the present one")
    shell = _add(under, "completion", "The script for a shell", print_completion)
    shell.add_argument("shell", choices=[*SHELLS, "words"])
    shell.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _of_profiles(under: Any) -> None:
    group = Group(under, "profile", "Installations and tokens")
    add = group.add("add", "Store an installation; asks for the token", add_profile, "name", "url")
    add.add_argument("--token-command", default="", help="prints the token each time")
    add.add_argument("--unchecked", action="store_true", help="do not try the token")
    group.add("list", "The installations", list_profiles)
    group.add("use", "Make one the current one", use_profile, "name")
    group.add("remove", "Forget one", remove_profile, "name")
    _add(under, "me", "The account and its permissions", show_me)
    _add(under, "health", "Pending calls, unreachable servers", show_health)
    usage = _add(under, "usage", "Calls, errors and durations", show_usage)
    usage.add_argument("--range", choices=RANGES, default="24h")
    of = usage.add_mutually_exclusive_group()
    for name in ("agent", "server", "tool"):
        of.add_argument(f"--{name}", default="")
    of.add_argument("--rule", type=int, default=0, metavar="ID")


def _of_registry(under: Any) -> None:
    group = Group(under, "servers", "MCP servers")
    group.listing("Servers", list_servers)
    group.add("show", "One server", show_server, "name")
    new = group.add("register", "Register a server; it publishes nothing", register_server, "name")
    where = new.add_mutually_exclusive_group(required=True)
    where.add_argument("--url")
    where.add_argument("--command", help="a name in the host's catalogue")
    new.add_argument("--title", default="")
    new.add_argument("--credential", action="store_true", help="ask for it, or read one line")
    group.add("discover", "Ask the server what it offers", discover_server, "name")
    group.add("review", "What agents do not have yet, with digests", review_server, "name")
    publish = group.add("publish", "Publish what you reviewed", publish_server, "name")
    publish.add_argument("reviewed", nargs="+", metavar="TOOL=DIGEST", help="as review prints it")
    _switch(group, switch_server)
    group = Group(under, "tools", "Tools")
    group.listing("Tools", list_tools).add_argument("--server")
    group.add("show", "A tool with its newest definition", show_tool, "name")
    group = Group(under, "toolsets", "Toolsets")
    group.listing("Toolsets", list_toolsets)
    group.add("show", "One toolset", show_toolset, "name")
    group.add("create", "A new toolset", create_toolset, "name").add_argument("--title", default="")
    for verb, adds in (("add", True), ("remove", False)):
        about = "Put in" if adds else "Take out"
        parser = group.add(verb, f"{about} tools, servers, agents", fill_toolset, "name", adds=adds)
        for part in ("tool", "server", "agent"):
            parser.add_argument(f"--{part}", dest=f"{part}s", action="append", default=[])
    export = group.add("export", "Its tools as a model's API takes them", export_toolset, "name")
    formats = ("mcp", "openai", "anthropic", "gemini", "json-schema")
    export.add_argument("--format", choices=formats, default="mcp")


def _of_agents(under: Any) -> None:
    group = Group(under, "agents", "Agents")
    group.listing("Agents", list_agents)
    new = group.add("create", "A new agent", create_agent, "name")
    new.add_argument("--owner", required=True, help="a user, who decides none of its calls")
    _switch(group, switch_agent)
    group = Group(under, "tokens", "Tokens of agents")
    group.listing("Tokens", list_tokens, "agent")
    issue = group.add("issue", "A new token, which is shown once", issue_token, "agent")
    issue.add_argument("--days", type=int, default=30)
    issue.add_argument("--toolset", action="append", default=[], help="one that it opens")
    issue.add_argument("--read-only", action="store_true", help="read-only tools alone")
    about = "A new token in the place of one, which works for an hour more"
    group.add("rotate", about, rotate_token, "agent", "id")
    revoke = group.add("revoke", "End a token at once", revoke_token, "agent", "id")
    revoke.add_argument("--reason", default="")


def _of_policy(under: Any) -> None:
    Group(under, "rules", "Rules").listing("Rules, in their order", list_rules)
    Group(under, "limits", "Limits").listing("Limits", list_limits)
    group = Group(under, "policy", "Policy files")
    export = group.add("export", "What is in force, as a file", export_policy)
    export.add_argument("--output", default="", metavar="FILE")
    group.add("validate", "Whether a file is right", validate_policy, "file")
    group.add("diff", "What a file changes; exit code 2 if it does", compare_policy, "file")
    plan = group.add("plan", "A plan to confirm in the console; exit code 2", plan_policy, "file")
    plan.add_argument("--origin", default="", help="the pull request or commit")
    plan.add_argument("--calls", type=int, default=0, help="so many are judged again")
    plan.add_argument("--markdown", default="", metavar="FILE", help="for the pull request")
    group.add("apply", "Apply a plan that people confirmed", apply_policy, "digest")


def _of_calls(under: Any) -> None:
    queue = _add(under, "queue", "Pending approvals; deciding is for people", show_queue)
    _listed(queue)
    group = Group(under, "calls", "Calls")
    calls = group.listing("Calls, the newest first", list_calls)
    for name in ("state", "agent", "tool"):
        calls.add_argument(f"--{name}")
    group.add("show", "One call", show_call, "id")
    group.add("cancel", "Cancel a queued or running call", cancel_call, "id")
    group = Group(under, "stops", "Emergency stops")
    group.listing("Stops, the newest first", list_stops)
    begin = group.add("begin", "Stop an agent, a server, or everything", begin_stop)
    of = begin.add_mutually_exclusive_group(required=True)
    of.add_argument("--agent")
    of.add_argument("--server")
    of.add_argument("--everything", action="store_true")
    begin.add_argument("--reason", required=True, help="agents and users read it")
    end = group.add("end", "End a stop that another account began", end_stop, "id")
    end.add_argument("--why", required=True)
    group = Group(under, "standing-approvals", "Standing approvals")
    group.listing("The newest first", list_grants)
    group.add("revoke", "End one", revoke_grant, "id")


def _of_record(under: Any) -> None:
    group = Group(under, "entries", "The audit log")
    export = group.add("export", "Entries as a file, whose digest is an entry", export_entries)
    export.add_argument("--format", choices=("jsonl", "csv"), default="jsonl")
    export.add_argument("--output", default="", metavar="FILE")
    for parser in (group.listing("The newest first", list_entries), export):
        parser.add_argument(
            "--filter", action="append", default=[], metavar="NAME=VALUE", help="such as range=7d"
        )
    export.add_argument(
        "--background",
        action="store_true",
        help="a worker prepares the file, and the download goes on after a cut line",
    )
    group = Group(under, "exports", "Your exports of the audit log")
    group.listing("The newest first", list_exports)
    ready = group.add(
        "download", "Wait for one, and download what is missing", download_export, "id"
    )
    ready.add_argument("--output", required=True, metavar="FILE")
    group.add("cancel", "Cancel one, or delete it once it is ready", cancel_export, "id")
    group = Group(under, "users", "Users")
    group.listing("Users", list_users)
    leaver = group.add("disable", "End a user's access; the console enables", disable_user, "name")
    leaver.add_argument("--reason", default="")
    group = Group(under, "webhooks", "Webhooks and chats")
    group.listing("Webhooks", list_webhooks)
    new = group.add("add", "A new one; its secret is shown once", add_webhook, "name")
    new.add_argument("--url", default="", help="without, asked for: a chat's is a secret")
    formats = ("standard", "slack", "teams", "mattermost", "discord", "telegram")
    new.add_argument("--format", choices=formats, default="standard")
    new.add_argument("--event", action="append", default=[], help="without any: all of them")
    _switch(group, switch_webhook)
    group.add("test", "Send a test message", test_webhook, "name")
    group.add("remove", "Remove one with its deliveries", remove_webhook, "name")
    sent = _listed(group.add("deliveries", "Its messages", list_deliveries, "name"))
    sent.add_argument("--state", choices=("pending", "sent", "dropped", "dead"))
    about = "Send again what was given up: to email, push, or a webhook"
    group.add("send-again", about, send_again, "receiver")
    group = Group(under, "on-call", "On-call schedules and their overrides")
    group.listing("Schedules, and who is on call now", list_schedules)
    _listed(group.add("overrides", "Of a schedule, the newest first", list_overrides, "name"))
    new = group.add("override", "Put another user on call", add_override, "name", "person")
    new.add_argument("--begins", required=True, metavar="TIME", help="2026-03-02T18:00:00+01:00")
    new.add_argument("--ends", required=True, metavar="TIME", help="likewise, with its offset")
    group.add("remove-override", "Remove an override", remove_override, "name", "id")


def _switch(group: Group, verb: Any) -> None:
    for name, enabled in (("enable", True), ("disable", False)):
        parser = group.add(name, f"{name.capitalize()} one", verb, "name", enabled=enabled)
        parser.add_argument("--reason", default="", help="for the audit log")


OFFLINE = (add_profile, list_profiles, use_profile, remove_profile, print_completion)


def run(arguments: Sequence[str] | None = None) -> int:
    given = make_parser().parse_args(arguments)
    if given.run in OFFLINE:
        given.run(given)
        return 0
    ended: int | None = given.run(given, connect(given), Output(given.json))
    return ended or 0


def lines_of(problem: Problem) -> Iterator[str]:
    """For people. The mistakes of a policy file are in the detail already, a line each."""
    yield from str(problem).splitlines()
    for one in problem.errors:
        if "line" not in one:
            yield f"  {one.get('pointer', '')}: {one.get('detail', '')}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, 1 after an error, 2 where a policy file changes something, 64 for wrong
    arguments."""
    try:
        return run(arguments)
    except Problem as problem:
        for line in lines_of(problem):
            print(shown(line), file=sys.stderr)
    except (CommandFailed, Unreachable, OSError, UnicodeError) as error:
        print(shown(error), file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


if __name__ == "__main__":
    sys.exit(main())
