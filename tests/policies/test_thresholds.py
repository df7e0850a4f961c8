"""What a rule may say of who decides, and for how long it waits."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError

from accounts.models import User
from audit.services import SYSTEM
from policies import thresholds
from policies.decide import load
from policies.models import Rule
from policies.services import save_rule
from policies.thresholds import BadThresholds, Distinct, StepUp, Threshold


def test_what_is_left_out_is_one_person() -> None:
    assert thresholds.parse([{}]) == (Threshold(),)
    assert thresholds.plain(()) == [
        {"approve": 1, "deny": 1, "from": "", "distinct": "person", "step_up": ""}
    ]


def test_what_is_said_comes_back() -> None:
    said = {
        "approve": 2,
        "deny": 1,
        "from": "group:payments",
        "distinct": "team",
        "step_up": "passkey",
    }
    parsed = thresholds.parse([said])

    assert parsed == (Threshold(2, 1, "group:payments", Distinct.TEAM, StepUp.PASSKEY),)
    assert thresholds.plain(parsed) == [said]
    assert str(parsed[0]) == (
        "2 approvals of payments, of different teams, confirmed by passkey; 1 denial decides"
    )


def test_a_threshold_that_counts_late_says_since_when() -> None:
    first, late = thresholds.parse([{"from": "group:payments"}, {"after_min": 15}])

    assert first.after_min == 0
    assert "after_min" not in first.plain()
    assert late.plain()["after_min"] == 15
    assert str(late) == "1 approval; 1 denial decides; only after 15 minutes"


def test_of_two_rules_the_later_time_holds() -> None:
    def at(minutes: int) -> tuple[Threshold, ...]:
        return (Threshold(source="group:payments"), Threshold(after_min=minutes))

    assert thresholds.combine(at(5), at(20)) == thresholds.combine(at(20))
    # A rule that lets nobody else decide is not loosened by one that does.
    alone = (Threshold(source="group:payments"),)
    assert thresholds.combine(at(5), alone) == thresholds.combine(alone)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("two", "Give a list"),
        ([{}] * 11, "at most 10"),
        (["x"], "must be an object"),
        ([{"approve": 0}], "from 1 to 50"),
        ([{"approve": True}], "from 1 to 50"),
        ([{"approve": 1.5}], "from 1 to 50"),
        ([{"approve": "2"}], "from 1 to 50"),
        ([{"deny": 51}], "from 1 to 50"),
        ([{"deny": 0}], "from 1 to 50"),
        ([{"from": "payments"}], "group:NAME"),
        ([{"from": "group:"}], "group:NAME"),
        ([{"from": None}], "group:NAME"),
        ([{"from": "person:ana", "approve": 2}], "one vote"),
        ([{"from": "person:ana", "deny": 2}], "one vote"),
        ([{"distinct": "town"}], "must be one of “person”, “team”"),
        ([{"distinct": []}], "must be one of"),
        ([{"step_up": "retina"}], "must be one of"),
        ([{}, {"after_min": -1}], "“after_min” must be a whole number from 0 to 1440"),
        ([{}, {"after_min": 1441}], "from 0 to 1440"),
        ([{}, {"after_min": True}], "from 0 to 1440"),
        ([{"after_min": 5}, {"after_min": 9}], "must count from the beginning"),
        ([{}, {"quorum": 2}], "Threshold 2: there is no “quorum”"),
    ],
)
def test_what_cannot_be_is_said(value: Any, said: str) -> None:
    with pytest.raises(BadThresholds, match=said):
        thresholds.parse(value)


def test_what_nobody_could_meet_is_not_saved(alice: User) -> None:
    Group.objects.create(name="payments")
    for source, n in (("group:payments", 1), ("", 2), ("person:bob", 1)):
        rule = Rule(name="R", effect="ask", thresholds=[{"approve": n, "from": source}])
        with pytest.raises(ValidationError, match="can never be met"):
            save_rule(rule, by=SYSTEM)

    save_rule(Rule(name="R", effect="ask", thresholds=[{"from": "person:alice"}]), by=SYSTEM)


@pytest.mark.parametrize("within", [0, 30 * 24 * 3600 + 1])
def test_how_long_has_bounds(db: None, within: int) -> None:
    for field in ("decide_within", "start_within"):
        with pytest.raises(ValidationError):
            save_rule(Rule(name="R", effect="ask", **{field: within}), by=SYSTEM)


def test_what_was_written_past_the_forms_asks_nobody_who_could_answer(db: None) -> None:
    Rule.objects.create(name="R", effect="ask", thresholds="none")

    (rule,) = load().rules
    assert rule.thresholds == (thresholds.NOBODY,)
