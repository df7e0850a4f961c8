"""Reads the three records beside each other, and says what does not fit."""

from __future__ import annotations

import hashlib
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
from tests.upstreams.cases import REFUSED, SHARED, UNKNOWN, Case

# What can only be said of a server that answered.
RECEIVED = ("succeeded", "tool_error")
LIVE = {"queued", "running", "approved", "held"}
ROWS = """
    WITH said AS (
        SELECT call_id, count(*) FILTER (WHERE seq IS NOT NULL) AS entries,
            count(*) FILTER (WHERE action = 'call.sent_again') AS resent,
            extract(epoch FROM min(at) FILTER (WHERE to_state = 'running'))::float AS intended_at
        FROM audit_entry WHERE call_id IS NOT NULL GROUP BY call_id
    ), decided AS (
        SELECT approval_id, count(*) FILTER (WHERE approve) AS yes, count(*) AS votes,
            min(seen_digest) AS seen,
            extract(epoch FROM min(at))::float AS at
        FROM approvals_vote WHERE fallen_at IS NULL GROUP BY approval_id
    )
    SELECT c.id, convert_from(c.arguments, 'UTF8')::json->>'nonce' AS nonce, c.tool_name, c.state,
        convert_from(COALESCE(m.arguments, c.arguments), 'UTF8') AS to_send, c.effect,
        c.statement, c.call_digest, c.executed, c.fence, c.seq,
        extract(epoch FROM c.sent_at)::float AS sent_at,
        extract(epoch FROM c.finished_at)::float AS finished_at, c.outcome, r.kind, r.body,
        extract(epoch FROM c.asked_at)::float AS asked_at, COALESCE(s.entries, 0) AS entries,
        COALESCE(s.resent, 0) AS resent, s.intended_at, COALESCE(d.yes, 0) AS yes,
        COALESCE(d.votes, 0) AS votes, d.seen, d.at AS decided_at
    FROM calls_call c LEFT JOIN said s ON s.call_id = c.id
        LEFT JOIN calls_result r ON r.call_id = c.id
        LEFT JOIN calls_amendment m ON m.id = c.amendment_id
        LEFT JOIN decided d ON d.approval_id = c.id
"""
LATE = "SELECT call_id, fence, state, body FROM calls_latereply"
# Clocks of one machine, read one after the other.
TICK_S = 0.002
# None of these leaves anybody in doubt how a call ended.
HARMLESS = {"kill broker", "pause broker", "wipe broker", "hang broker", "kill sealer"}
HARMLESS |= {"lose cancels", "shift clock"}
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
    # So many clients asked at a time.
    crowd: int
    violations: list[str] = field(default_factory=list)

    def asked(self, nonce: str) -> dict[str, Any]:
        """What its client wrote down before it asked."""
        return next((line for line in self.told[nonce] if "asked" in line), {})

    def case(self, nonce: str) -> Case | None:
        found = self.asked(nonce).get("case")
        return Case(**found) if found else None

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


def gather(home: Path, admin: psycopg.Connection, *, lease_s: float, crowd: int) -> Truth:
    rows, late = database(admin)
    received: dict[str, list[dict[str, Any]]] = defaultdict(list)
    told: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in read(home / "received.jsonl"):
        received[line["nonce"]].append(line)
    for line in read(home / "told.jsonl"):
        told[line["nonce"]].append(line)
    faults = [
        (line["began"], line["ended"])
        for line in read(home / "faults.jsonl")
        if "ended" in line and line["what"] not in HARMLESS
    ]
    return Truth(rows, late, received, told, faults, _kept(home), lease_s, crowd)


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
        _sent_as_asked,
        _sent_as_approved,
        _nobody_told_wrong,
        _nothing_acknowledged_lost,
        _told_as_recorded,
        _servers_are_understood,
        _record_fits_receipts,
        _everything_ended,
        _nothing_kept_lost,
        _unknown_has_a_cause,
        _unknown_is_bounded,
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
        row, case = truth.by_nonce.get(nonce), truth.case(nonce)
        if row and receipts[0]["tool"] == "safe":
            most = row.fence
        else:
            # By its revision's words that server took nothing, and each send has its entry.
            resent = row.resent if row and case and case.ended_its_session else 0
            most = 1 + min(resent, 1)
        if len(receipts) > most:
            truth.wrong(nonce, f"received {len(receipts)} times")


def _sent_as_asked(truth: Truth) -> None:
    """The same characters, from whoever asked to whoever received."""
    for row in truth.rows:
        asked = truth.asked(row.nonce).get("arguments", row.to_send)
        received = {line["arguments"] for line in truth.received[row.nonce]}
        if row.to_send != asked:
            truth.wrong(row.nonce, f"asked with {asked}, and recorded as {row.to_send}")
        if received - {row.to_send}:
            truth.wrong(row.nonce, f"recorded as {row.to_send}, and received as {received}")


def _sent_as_approved(truth: Truth) -> None:
    for row in truth.rows:
        receipts = truth.received[row.nonce]
        if row.effect != "ask" or not receipts:
            continue
        sha256 = hashlib.sha256(receipts[0]["arguments"].encode()).hexdigest()
        if (row.yes, row.votes) != (1, 1):
            truth.wrong(row.nonce, f"sent with {row.yes} of {row.votes} votes")
        elif row.decided_at > receipts[0]["at"] + TICK_S:
            truth.wrong(row.nonce, "sent before it was approved")
        elif row.seen != _digest(row.statement):
            truth.wrong(row.nonce, "approved as something else than its statement")
        elif json.loads(row.statement)["arguments"] != sha256:
            truth.wrong(row.nonce, "received with other arguments than were approved")


def _digest(statement: str) -> str:
    return hashlib.sha256(f"countersign call 1\n{statement}".encode()).hexdigest()


def _nobody_told_wrong(truth: Truth) -> None:
    for nonce, lines in truth.told.items():
        receipts = {line["receipt"] for line in truth.received[nonce]}
        for line in lines:
            if line.get("told") == "succeeded" and line["receipt"] not in receipts:
                truth.wrong(nonce, "told succeeded, and never received")
            # Held, it is not executed before somebody says so.
            denied = line.get("executed") == "no" and line["told"] != "held"
            denied |= "othing was sent" in line.get("why", "")
            if denied and receipts:
                truth.wrong(nonce, f"told “not executed” ({line['told']}), and yet received")
            turned_away = line.get("told") == "refused" and "status" in line
            if turned_away and receipts and not _may_be_there(line, "may have been"):
                truth.wrong(nonce, f"turned away with {line['status']}, and yet received")
            # People may yet let it run, so its agent must know that it may be there.
            ignorant = turned_away and not _may_be_there(line, "not known")
            if ignorant and _waits(truth, nonce):
                truth.wrong(nonce, f"turned away with {line['status']}, and yet held")
            if line.get("told") == "cancelled" and _untrue_cancel(truth, nonce):
                truth.wrong(nonce, "told cancelled, and yet received")


def _may_be_there(line: dict[str, Any], words: str) -> bool:
    """By what its client was told; REST says so in a member of its own."""
    return words in line["why"] or line.get("recorded") in ("yes", "unknown")


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


FINAL = ("failed", "tool_error", "timed_out", "cancelled", "denied", "expired", "superseded")


def _told_as_recorded(truth: Truth) -> None:
    for nonce, lines in truth.told.items():
        row = truth.by_nonce.get(nonce)
        for line in lines:
            said = line.get("told")
            if row is None or said is None:
                continue
            if said in FINAL and said != row.state:
                truth.wrong(nonce, f"told {said}, and recorded otherwise")
            if said in FINAL and line.get("executed", row.executed) != row.executed:
                truth.wrong(nonce, f"told “{line['executed']}”, and recorded otherwise")
            # An error of the server's own goes to the agent as it is.
            if said == "error" and (row.state, row.executed) != REFUSED:
                truth.wrong(nonce, f"told an error ({line['why'][:80]}), and recorded otherwise")
            if said == "succeeded" and line["text"] not in _texts(truth, row):
                truth.wrong(nonce, "told another answer than is recorded")


def _texts(truth: Truth, row: Any) -> list[str]:
    bodies = [row.body, *(line.body for line in truth.late[row.id])]
    return [json.loads(bytes(body))["content"][0]["text"] for body in bodies if body]


def _servers_are_understood(truth: Truth) -> None:
    """What a misbehaving server did is called by its name, or disturbed by something else."""
    for row in truth.rows:
        case = truth.case(row.nonce)
        if case is None or row.state in LIVE or (row.state, row.executed) == case.expected:
            continue
        if not truth.received[row.nonce] and row.state not in RECEIVED:
            continue
        if row.state == "unknown" and _is_excused(truth, row):
            continue
        if (row.state, row.executed) == ("failed", "unknown") and _disturbed(truth, row):
            # Its second attempt was not sent.
            continue
        truth.wrong(row.nonce, f"its server did “{case.nonce}”, and the record says: {row.outcome}")


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
        if row.state == "unknown" and not _is_excused(truth, row):
            truth.wrong(row.nonce, f"unknown, and nothing disturbed it: {row.outcome}")


def _is_excused(truth: Truth, row: Any) -> bool:
    return (
        _by_its_server(truth, row.nonce)
        or _let_go(truth, row.nonce)
        or _disturbed(truth, row)
        or _broken_by_another(truth, row)
    )


def _by_its_server(truth: Truth, nonce: str) -> bool:
    case = truth.case(nonce)
    return case is not None and case.expected == UNKNOWN


def _broken_by_another(truth: Truth, row: Any) -> bool:
    """Calls of one stream or process end with it."""
    server = truth.asked(row.nonce).get("server")
    if server not in SHARED:
        return False
    began, ended = row.sent_at or row.asked_at, row.finished_at or float("inf")
    return any(
        other is not row
        and truth.asked(other.nonce).get("server") == server
        and (other.sent_at or other.asked_at) <= ended
        and (other.finished_at or float("inf")) + AFTERMATH_S >= began
        for other in truth.rows
    )


@dataclass(frozen=True)
class Unknown:
    """How many calls nobody knows the end of, by what explains it."""

    by_servers: int
    let_go: int
    by_faults: int
    # What so many faults may explain: each of them the calls that were under way.
    most: int


def count_unknown(truth: Truth) -> Unknown:
    rows = [row for row in truth.rows if row.state == "unknown"]
    by_servers = [
        row for row in rows if _by_its_server(truth, row.nonce) or _broken_by_another(truth, row)
    ]
    let_go = [row for row in rows if row not in by_servers and _let_go(truth, row.nonce)]
    by_faults = len(rows) - len(by_servers) - len(let_go)
    return Unknown(len(by_servers), len(let_go), by_faults, truth.crowd * len(truth.faults))


def _unknown_is_bounded(truth: Truth) -> None:
    unknown = count_unknown(truth)
    if unknown.by_faults > unknown.most:
        said = f"{unknown.by_faults} calls are unknown, and {len(truth.faults)} faults explain"
        truth.violations.append(f"{said} {unknown.most} at most")


def _disturbed(truth: Truth, row: Any) -> bool:
    until = row.finished_at or float("inf")
    return any(
        began <= until and ended + AFTERMATH_S >= (row.sent_at or row.asked_at)
        for began, ended in truth.faults
    )


def _let_go(truth: Truth, nonce: str) -> bool:
    """Its client asked for its end, or its server broke off."""
    asked = truth.asked(nonce).get("asked", "")
    return "cancelled" in asked or "closed" in asked or "dropped" in asked
