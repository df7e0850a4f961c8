"""Where several rules ask, each of them has to be satisfied, whatever their order."""

from collections.abc import Iterable, Sequence
from itertools import combinations, permutations
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import decide
from policies.decide import Decision, Subject
from policies.models import Effect, Rule
from policies.thresholds import (
    DEFAULT,
    NOBODY,
    STRENGTH,
    Distinct,
    StepUp,
    Threshold,
    clauses,
    combine,
    describe,
    plain,
    stored,
)

PAYMENTS = Threshold(approve=2, source="group:payments")
CFO = Threshold(source="group:cfo")
CAROL = Threshold(source="person:carol")
TEAMS = Threshold(approve=2, distinct=Distinct.TEAM)
PASSKEY = Threshold(step_up=StepUp.PASSKEY)


def rule(name: str, position: int, effect: Effect = Effect.ASK, **values: Any) -> Rule:
    asked = values.pop("thresholds", None)
    kept = plain(asked) if asked else []
    return Rule.objects.create(
        name=name, position=position, effect=effect, thresholds=kept, **values
    )


def decided(arguments: Any = None) -> Decision:
    subject = Subject(1, "scout", frozenset(), 1, "bank", "pay", {}, arguments=arguments or {})
    return decide.load().decide(subject)


@pytest.mark.django_db
def test_a_stricter_rule_behind_another_holds() -> None:
    rule("Example", 1, reason="It writes.")
    rule("Payments", 2, thresholds=[PAYMENTS])

    decision = decided()

    assert (decision.rule, decision.reason) == ("Example", "It writes.")
    assert decision.thresholds == (PAYMENTS,)


@pytest.mark.django_db
def test_order_makes_no_difference() -> None:
    rule("Payments", 1, thresholds=[PAYMENTS])
    rule("Example", 2)

    assert decided().thresholds == (PAYMENTS,)


@pytest.mark.django_db
def test_conditions_count_where_they_hold() -> None:
    rule("Example", 1)
    rule("Large", 2, thresholds=[PAYMENTS], when="args.amount > 100")
    rule("Odd", 3, thresholds=[CFO], when="args.nothing > 100")

    # What cannot be judged asks whom its rule asks.
    assert describe(decided({"amount": 1}).thresholds) == str(CFO)
    assert decided({"amount": 101}).thresholds == combine((PAYMENTS,), (CFO,))
    assert decided({"amount": 1, "nothing": 1}).thresholds == DEFAULT


@pytest.mark.django_db
def test_times_and_confirmations_are_the_strictest() -> None:
    rule("a", 1, decide_within=600)
    rule("b", 2, decide_within=60, start_within=900, confirm_grants=True)

    decision = decided()

    assert (decision.decide_within_s, decision.start_within_s) == (60, 900)
    assert decision.confirm_grants
    assert decision.rule == "a"


@pytest.mark.django_db
def test_rules_that_allow_or_are_off_or_for_others_add_nothing() -> None:
    rule("a", 1)
    rule("b", 2, Effect.ALLOW, thresholds=[PAYMENTS])
    rule("c", 3, thresholds=[PAYMENTS], mode=Rule.Mode.OFF)
    rule("d", 4, thresholds=[PAYMENTS], server="other")

    assert decided().thresholds == DEFAULT


@pytest.mark.django_db
def test_a_denial_is_a_denial_whoever_else_is_asked() -> None:
    rule("a", 1)
    rule("b", 2, thresholds=[PAYMENTS])
    rule("c", 3, Effect.DENY)

    assert decided().effect == Effect.DENY


@pytest.mark.django_db
def test_a_watched_rule_changes_nothing_and_says_whom_it_would_ask() -> None:
    rule("a", 1)
    rule("b", 2, thresholds=[PAYMENTS], mode=Rule.Mode.SHADOW)

    decision = decided()

    assert decision.thresholds == DEFAULT
    assert decision.shadow_effect == {"effect": "ask", "rule": "b", "who": str(PAYMENTS)}


@pytest.mark.parametrize(
    ("several", "said"),
    [
        ([DEFAULT, DEFAULT], [str(DEFAULT[0])]),
        ([DEFAULT, (PAYMENTS, CAROL)], [f"{CAROL}, or {PAYMENTS}"]),
        # A circle that is too small for the other rule's number is not asked for it.
        ([(Threshold(approve=2),), (CFO,)], [str(CFO), "2 approvals; 1 denial decides"]),
        ([(Threshold(approve=2),), (CAROL,)], [str(CAROL), "2 approvals; 1 denial decides"]),
        ([(PAYMENTS,), (CFO,)], [str(CFO), str(PAYMENTS)]),
        ([(PAYMENTS,), (CFO,), DEFAULT], [str(CFO), str(PAYMENTS)]),
        # A group is one team for everybody but the threshold that names it.
        ([(TEAMS,), (PAYMENTS,)], [str(TEAMS), str(PAYMENTS)]),
        (
            [(Threshold(approve=2),), (PASSKEY,)],
            ["2 approvals, confirmed by passkey; 1 denial decides"],
        ),
        ([(Threshold(deny=3),), (PAYMENTS,)], [str(PAYMENTS)]),
        ([(NOBODY,), (CFO,)], [str(CFO), str(NOBODY)]),
    ],
)
def test_what_several_rules_come_to(several: list[tuple[Threshold, ...]], said: list[str]) -> None:
    for order in permutations(several):
        assert describe(combine(*order)) == " – and also: ".join(said)


def test_what_is_combined_is_kept_and_read_again() -> None:
    both = combine((PAYMENTS,), (CFO, CAROL), (NOBODY,))

    assert len(clauses(both)) == 3
    assert stored(plain(both)) == both


class Vote(NamedTuple):
    groups: frozenset[str]
    step_up: StepUp
    approve: bool


votes = st.builds(
    Vote,
    st.frozensets(st.sampled_from(["a", "b", "team"])),
    st.sampled_from(StepUp),
    st.booleans(),
)
thresholds = st.builds(
    Threshold,
    approve=st.integers(1, 3),
    deny=st.integers(1, 3),
    source=st.sampled_from(["", "group:a", "group:b"]),
    distinct=st.sampled_from(Distinct),
    step_up=st.sampled_from(StepUp),
)
rules = st.lists(st.lists(thresholds, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3)


@given(rules, st.lists(votes, max_size=4))
def test_what_meets_all_together_meets_each(
    several: list[tuple[Threshold, ...]], given: list[Vote]
) -> None:
    if is_approved(combine(*several), given):
        assert all(is_approved(asked, given) for asked in several)


@given(rules, st.randoms(use_true_random=False))
def test_the_order_of_rules_is_all_the_same(
    several: list[tuple[Threshold, ...]], random: Random
) -> None:
    assert combine(*random.sample(several, len(several))) == combine(*several)


def is_approved(asked: Sequence[Threshold], given: Iterable[Vote]) -> bool:
    """As the database counts (approvals/sql/counting_votes.sql), of the best of all teams."""
    return all(
        any(_yeses(one, given) >= one.approve for one in clause) for clause in clauses(asked)
    )


def _yeses(one: Threshold, given: Iterable[Vote]) -> int:
    able = [
        vote
        for vote in given
        if vote.approve
        and STRENGTH.index(vote.step_up) >= STRENGTH.index(one.step_up)
        and one.is_from("", vote.groups)
    ]
    if one.distinct == Distinct.PERSON:
        return len(able)
    of = one.source.partition(":")[2]
    teams = [vote.groups - {of} for vote in able]
    return max(n for n in range(len(able) + 1) for some in combinations(teams, n) if _apart(some))


def _apart(teams: Iterable[frozenset[str]]) -> bool:
    return all(one.isdisjoint(other) for one, other in combinations(teams, 2))
