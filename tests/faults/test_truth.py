"""Each comparison finds what does not fit, in three records written by hand."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.truth import Truth, check
from tests.upstreams.cases import Case

ARGUMENTS = '{"nonce" :"n"}'
TEXT = json.dumps({"nonce": "n", "receipt": 1})
BODY = json.dumps({"content": [{"type": "text", "text": TEXT}]}).encode()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


STATEMENT = json.dumps({"arguments": digest(ARGUMENTS)})


def row(**changed: Any) -> SimpleNamespace:
    """A call that a person approved, and that succeeded."""
    known = {"id": 1, "nonce": "n", "tool_name": "held", "to_send": ARGUMENTS, "effect": "ask"}
    known |= {"statement": STATEMENT, "state": "succeeded", "executed": "yes", "fence": 1}
    known |= {"seq": 4, "entries": 4, "resent": 0, "asked_at": 1.0, "decided_at": 2.0}
    known |= {"intended_at": 3.0, "sent_at": 3.0, "finished_at": 5.0, "outcome": "", "body": BODY}
    seen = digest(f"countersign call 1\n{STATEMENT}")
    return SimpleNamespace(
        **(known | {"kind": "result", "yes": 1, "votes": 1, "seen": seen} | changed)
    )


def receipt(**changed: Any) -> dict[str, Any]:
    known = {"at": 4.0, "nonce": "n", "tool": "held", "receipt": 1, "arguments": ARGUMENTS}
    return known | changed


def truth(
    recorded: SimpleNamespace,
    received: list[dict[str, Any]],
    *told: dict[str, Any],
    case: Case | None = None,
    faults: int = 0,
) -> list[str]:
    asked: dict[str, Any] = {
        "nonce": "n",
        "asked": "approved",
        "server": "up",
        "arguments": ARGUMENTS,
    }
    if case:
        asked["case"] = vars(case)
    lines = {"n": [asked, *told]}
    return check(
        Truth(
            rows=[recorded],
            late=defaultdict(list),
            received=defaultdict(list, {"n": received} if received else {}),
            told=defaultdict(list, lines),
            faults=[(3.0, 4.0)] * faults,
            kept=set(),
            lease_s=5,
            crowd=1,
        )
    )


SUCCEEDED = {"told": "succeeded", "receipt": 1, "text": TEXT}
NOT_EXECUTED = {"told": "failed", "executed": "no", "why": ""}
UNKNOWN = {"state": "unknown", "executed": "unknown", "body": None}
FAILED = {"state": "failed", "executed": "no", "body": None}
ACTED = Case("modern", "status", 404)


def test_what_fits_is_no_violation() -> None:
    assert truth(row(), [receipt()], SUCCEEDED) == []
    assert truth(row(**FAILED), [], NOT_EXECUTED) == []
    assert truth(row(**UNKNOWN), [receipt()], case=ACTED) == []
    assert truth(row(**UNKNOWN), [receipt()], faults=1) == []


@pytest.mark.parametrize(
    ("violations", "said"),
    [
        (truth(row(), [receipt(), receipt()]), "received 2 times"),
        (truth(row(resent=1), [receipt(), receipt()]), "received 2 times"),
        (truth(row(), [receipt(arguments='{"nonce":"n"}')]), "and received as"),
        (truth(row(to_send="{}"), [receipt(arguments="{}")]), "and recorded as {}"),
        (truth(row(yes=0, votes=0), [receipt()]), "sent with 0 of 0 votes"),
        (truth(row(yes=0), [receipt()]), "sent with 0 of 1 votes"),
        (truth(row(decided_at=4.5), [receipt()]), "before it was approved"),
        (truth(row(seen="0"), [receipt()]), "something else than its statement"),
        (truth(row(), [receipt()], NOT_EXECUTED), "told “not executed”"),
        (truth(row(**FAILED), [receipt()]), "recorded as not executed, and yet received"),
        (truth(row(**FAILED), [], {"told": "cancelled"}), "told cancelled, and recorded otherwise"),
        (truth(row(), [receipt()], SUCCEEDED | {"text": "{}"}), "another answer than is recorded"),
        (truth(row(), [receipt()], {"told": "error", "why": ""}), "told an error"),
        (truth(row(), [receipt()], case=ACTED), "its server did"),
        (truth(row(**UNKNOWN), [receipt()]), "unknown, and nothing disturbed it"),
        (truth(row(), []), "recorded as succeeded, and never received"),
    ],
)
def test_what_does_not_fit_is_found(violations: list[str], said: str) -> None:
    assert any(said in violation for violation in violations), violations


def test_more_unknown_calls_than_faults_explain_are_too_many() -> None:
    lost = [row(**UNKNOWN, id=n, nonce=f"n{n}") for n in range(2)]
    received = {one.nonce: [receipt(nonce=one.nonce)] for one in lost}
    told = {one.nonce: [{"asked": "plain", "arguments": ARGUMENTS}] for one in lost}
    one_fault = Truth(
        rows=lost,
        late=defaultdict(list),
        received=defaultdict(list, received),
        told=defaultdict(list, told),
        faults=[(3.0, 4.0)],
        kept=set(),
        lease_s=5,
        crowd=1,
    )

    assert check(one_fault) == ["2 calls are unknown, and 1 faults explain 1 at most"]
