"""Reads the three records beside each other, and says what does not fit."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import namedtuple_row

from tests.faults.paper import read

LIVE = {"queued", "running", "approved", "held"}
ROWS = """
    WITH said AS (
        SELECT call_id, count(*) FILTER (WHERE seq IS NOT NULL) AS entries,
            extract(epoch FROM min(at) FILTER (WHERE to_state = 'running'))::float AS intended_at
        FROM audit_entry WHERE call_id IS NOT NULL GROUP BY call_id
    )
    SELECT c.id, convert_from(c.arguments, 'UTF8')::json->>'nonce' AS nonce, c.tool_name, c.state,
        c.executed, c.fence, c.seq, extract(epoch FROM c.sent_at)::float AS sent_at,
        extract(epoch FROM c.finished_at)::float AS finished_at, c.outcome, r.kind, r.body,
        COALESCE(s.entries, 0) AS entries, s.intended_at
    FROM calls_call c LEFT JOIN said s ON s.call_id = c.id
        LEFT JOIN calls_result r ON r.call_id = c.id
"""
LATE = "SELECT call_id, fence, state, body FROM calls_latereply"
# Clocks of one machine, read one after the other.
TICK_S = 0.002
# For so long after a fault may its victims still feel it.
AFTERMATH_S = 3.0


@dataclass
class Truth:
    """Everything that was written down, by nonce."""

    rows: list[Any]
    late: dict[UUID, list[Any]]
    received: dict[str, list[dict[str, Any]]]
    told: dict[str, list[dict[str, Any]]]
    faults: list[tuple[float, float]]
    kept: set[UUID]
    lease_s: float
    violations: list[str] = field(default_factory=list)

    @cached_property
    def by_nonce(self) -> dict[str, Any]:
        return {row.nonce: row for row in self.rows}

    def wrong(self, nonce: str, what: str) -> None:
        row = self.by_nonce.get(nonce)
        said = (
            f"{row.tool_name} {row.state}/{row.executed or '-'} attempt {row.fence}"
            if row
            else "no row"
        )
        told = [line.get("told") for line in self.told[nonce] if "told" in line]
        receipts = len(self.received[nonce])
        self.violations.append(
            f"{what} [nonce {nonce}; record: {said}; received {receipts}; told {told}]"
        )


def gather(home: Path, admin: psycopg.Connection, lease_s: float) -> Truth:
    rows, late = database(admin)
    received: dict[str, list[dict[str, Any]]] = defaultdict(list)
    told: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in read(home / "received.jsonl"):
        received[line["nonce"]].append(line)
    for line in read(home / "told.jsonl"):
        told[line["nonce"]].append(line)
    faults = [(f["began"], f["ended"]) for f in read(home / "faults.jsonl") if "ended" in f]
    return Truth(rows, late, received, told, faults, _kept(home), lease_s)


def database(admin: psycopg.Connection) -> tuple[list[Any], dict[UUID, list[Any]]]:
    late: dict[UUID, list[Any]] = defaultdict(list)
    with admin.cursor(row_factory=namedtuple_row) as cursor:
        rows: list[Any] = cursor.execute(ROWS).fetchall()
        lines: list[Any] = cursor.execute(LATE).fetchall()
    for line in lines:
        late[line.call_id].append(line)
    return rows, late


def _kept(home: Path) -> set[UUID]:
    """The calls whose reply a process said it had put aside, in its log."""
    kept = set()
    for log in home.glob("*.log"):
        for line in log.read_text(errors="replace").splitlines():
            if "its reply is kept in the spool" in line:
                kept.add(UUID(line.partition("call ")[2].split(":")[0]))
    return kept


def check(truth: Truth) -> list[str]:
    """The first violation is the first of the list."""
    for look in (
        _one_row_each,
        _nothing_without_intent,
        _nothing_twice,
        _nobody_told_wrong,
        _nothing_acknowledged_lost,
        _record_fits_receipts,
        _everything_ended,
        _nothing_kept_lost,
        _unknown_has_a_cause,
    ):
        look(truth)
    return truth.violations


def _one_row_each(truth: Truth) -> None:
    for nonce, count in Counter(row.nonce for row in truth.rows).items():
        if count > 1:
            truth.wrong(nonce, "one request became two calls")
    for row in truth.rows:
        if row.entries != row.seq:
            truth.wrong(row.nonce, f"{row.seq} moves and {row.entries} entries")


def _nothing_without_intent(truth: Truth) -> None:
    recorded = truth.by_nonce
    for nonce, receipts in truth.received.items():
        row = recorded.get(nonce)
        if row is None:
            truth.wrong(nonce, "received without a record of it")
        elif row.intended_at is None:
            truth.wrong(nonce, "received, and never recorded as running")
        elif row.intended_at > receipts[0]["at"] + TICK_S:
            truth.wrong(nonce, "received before its intent was recorded")


def _nothing_twice(truth: Truth) -> None:
    for nonce, receipts in truth.received.items():
        row = truth.by_nonce.get(nonce)
        most = row.fence if row and receipts[0]["tool"] == "safe" else 1
        if len(receipts) > most:
            truth.wrong(nonce, f"received {len(receipts)} times")


def _nobody_told_wrong(truth: Truth) -> None:
    for nonce, lines in truth.told.items():
        receipts = {line["receipt"] for line in truth.received[nonce]}
        for line in lines:
            if line.get("told") == "succeeded" and line["receipt"] not in receipts:
                truth.wrong(nonce, "told succeeded, and never received")
            denied = line.get("executed") == "no" or "othing was sent" in line.get("why", "")
            if denied and receipts:
                truth.wrong(nonce, f"told “not executed” ({line['told']}), and yet received")
            if line.get("told") == "refused" and receipts and "may have been" not in line["why"]:
                truth.wrong(nonce, f"turned away with {line['status']}, and yet received")
            # People may yet let it run, so its agent must know that it may be there.
            ignorant = line.get("told") == "refused" and "not known" not in line["why"]
            if ignorant and _waits(truth, nonce):
                truth.wrong(nonce, f"turned away with {line['status']}, and yet held")
            if line.get("told") == "cancelled" and _untrue_cancel(truth, nonce):
                truth.wrong(nonce, "told cancelled, and yet received")


def _waits(truth: Truth, nonce: str) -> bool:
    row = truth.by_nonce.get(nonce)
    return row is not None and row.state == "held"


def _untrue_cancel(truth: Truth, nonce: str) -> bool:
    """Its server never confirms a cancellation: who was received is not cancelled, unless an
    operator said that repeating does no harm."""
    receipts = truth.received[nonce]
    return bool(receipts) and receipts[0]["tool"] != "safe"


def _nothing_acknowledged_lost(truth: Truth) -> None:
    for nonce, lines in truth.told.items():
        row = truth.by_nonce.get(nonce)
        for line in lines:
            match line.get("told"):
                case None | "nothing" | "refused":
                    continue
                case _ if row is None:
                    truth.wrong(nonce, f"told {line['told']}, and the record has forgotten it")
                case "accepted" if str(row.id) != line["call"]:
                    truth.wrong(nonce, "the call has another id than was told")
                case "succeeded" if not _has_reply(truth, row, line["receipt"]):
                    truth.wrong(nonce, "told succeeded, and the record has not its result")


def _has_reply(truth: Truth, row: Any, receipt: int) -> bool:
    bodies = [row.body, *(line.body for line in truth.late[row.id])]
    return receipt in [_receipt(body) for body in bodies if body]


def _receipt(body: bytes) -> int | None:
    try:
        text = json.loads(bytes(body))["content"][0]["text"]
        return int(json.loads(text)["receipt"])
    except (KeyError, IndexError, ValueError, TypeError):
        return None


def _record_fits_receipts(truth: Truth) -> None:
    for row in truth.rows:
        receipts = truth.received[row.nonce]
        numbers = {line["receipt"] for line in receipts}
        if row.state == "succeeded" and _receipt(row.body) not in numbers:
            truth.wrong(row.nonce, "recorded as succeeded, and never received")
        if row.executed == "no" and receipts:
            truth.wrong(row.nonce, "recorded as not executed, and yet received")
        if row.state == "cancelled" and _untrue_cancel(truth, row.nonce):
            truth.wrong(row.nonce, "recorded as cancelled, and yet received")
        # Each attempt was received: then the result must be the last one's, which holds the call.
        told = _receipt(row.body) if row.body else None
        if told and len(receipts) == row.fence and told != row.fence:
            truth.wrong(row.nonce, f"an attempt that was given up (the {told}.) wrote the outcome")


def _everything_ended(truth: Truth) -> None:
    for row in truth.rows:
        if row.state in LIVE and not _nobody_knows_that_it_waits(truth, row):
            truth.wrong(row.nonce, "has not ended in time")


def _nobody_knows_that_it_waits(truth: Truth, row: Any) -> bool:
    """Held, and its agent was told nothing or that it may be: it waits for whoever finds it in
    the queue, as long as rules give it."""
    told = {line.get("told") for line in truth.told[row.nonce]} - {None}
    return row.state == "held" and told <= {"nothing", "refused"}


def _nothing_kept_lost(truth: Truth) -> None:
    by_id = {row.id: row for row in truth.rows}
    for call_id in truth.kept:
        row = by_id.get(call_id)
        if row is None or not (
            row.body or truth.late[call_id] or row.state in ("failed", "cancelled")
        ):
            truth.wrong(
                row.nonce if row else str(call_id), "its reply was kept in the spool and is lost"
            )


def _unknown_has_a_cause(truth: Truth) -> None:
    for row in truth.rows:
        if row.state == "unknown" and not _disturbed(truth, row) and not _let_go(truth, row.nonce):
            truth.wrong(row.nonce, f"unknown, and nothing disturbed it: {row.outcome}")


def _disturbed(truth: Truth, row: Any) -> bool:
    until = row.finished_at or float("inf")
    return any(
        began <= until and ended + AFTERMATH_S + truth.lease_s >= row.sent_at
        for began, ended in truth.faults
    )


def _let_go(truth: Truth, nonce: str) -> bool:
    """Its client asked for its end, or its server broke off."""
    asked = truth.told[nonce][0].get("asked", "")
    return "cancelled" in asked or "closed" in asked or "dropped" in asked
