"""The score of a call: what it is made of, as a table."""

from datetime import timedelta

import pytest

from approvals.queue_list import telling_argument
from approvals.risk import Reason, RiskFacts, assess
from approvals.risk_history import RiskHistory
from core import exact_json

OLD = timedelta(days=90)
READS = {"readOnlyHint": True, "openWorldHint": False}
CHANGES = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
DESTROYS = {"destructiveHint": True, "openWorldHint": True}
FIRST = RiskHistory(is_first_use=True)

TABLE = [
    (RiskFacts(READS, age=OLD), 0, "low"),
    (RiskFacts(CHANGES, age=OLD), 10, "low"),
    (RiskFacts(DESTROYS, age=OLD), 45, "medium"),
    # Not declared is nearly as bad as the worst.
    (RiskFacts({}, age=OLD), 35, "medium"),
    # What only reads says nothing of what it destroys.
    (RiskFacts({**DESTROYS, "readOnlyHint": True}, age=OLD), 15, "low"),
    (RiskFacts(DESTROYS, history=FIRST, age=OLD), 60, "high"),
    (RiskFacts(READS, history=FIRST, age=OLD), 15, "low"),
    (RiskFacts(DESTROYS, history=RiskHistory(denied=1), age=OLD), 55, "medium"),
    (RiskFacts(DESTROYS, history=RiskHistory(denied=40), age=OLD), 65, "high"),
    (RiskFacts(DESTROYS, version=2, age=timedelta(days=1)), 60, "high"),
    (RiskFacts(DESTROYS, version=2, age=timedelta(days=8)), 45, "medium"),
    (RiskFacts(DESTROYS, version=1, age=timedelta(days=1)), 50, "medium"),
    (RiskFacts(DESTROYS, age=None), 45, "medium"),
    (RiskFacts(READS, size=4_001, age=OLD), 5, "low"),
    (RiskFacts(READS, size=40_001, age=OLD), 10, "low"),
    (RiskFacts(READS, hidden=1, lookalikes=1, age=OLD), 45, "medium"),
    (RiskFacts(DESTROYS, FIRST, 50_000, 9, 9, version=2, age=timedelta()), 100, "high"),
]


@pytest.mark.parametrize(("facts", "score", "level"), TABLE)
def test_the_score_and_its_level(facts: RiskFacts, score: int, level: str) -> None:
    found = assess(facts)

    assert (found.score, found.level) == (score, level)


def test_the_heaviest_reason_stands_first_and_each_is_in_words() -> None:
    facts = RiskFacts(DESTROYS, RiskHistory(is_first_use=True, denied=3), 5_200, age=OLD)

    assert assess(facts).reasons == [
        Reason(30, "destructive"),
        Reason(20, "3 calls like it were denied"),
        Reason(15, "open-world: reaches other systems"),
        Reason(15, "first use of the tool by this agent"),
        Reason(5, "5 kB of arguments"),
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"body": "Hello", "to": ["ana@example.org", "ben@example.org"]}, "to ana@"),
        ({"note": "x", "amount": exact_json.Number("12.50")}, "amount 12.50"),
        ({"flag": True, "pattern": "def\n  main"}, "pattern def main"),
        ({"to": [], "deep": {"path": "/etc"}}, " "),
        ([1, 2], " "),
    ],
)
def test_the_argument_that_tells_most(given: object, told: str) -> None:
    assert " ".join(telling_argument(given)).startswith(told)
