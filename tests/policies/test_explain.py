"""Which rule, why, and what else came close."""

from io import StringIO

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command

from accounts.models import Agent, User
from accounts.roles import Role
from calls.models import Call
from policies.models import Effect, Rule
from tests.console import scenery

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def mailer(olga: User, alice: User) -> None:
    scenery.server("mailer", olga, scenery.SEND)


def explained(*words: str) -> list[str]:
    out = StringIO()
    call_command("explain", *words, stdout=out)
    return out.getvalue().splitlines()


def rule(name: str, effect: Effect, **values: object) -> Rule:
    return Rule.objects.create(name=name, effect=effect, **values)


def test_it_names_the_rule_and_those_that_came_close(scout: Agent, bob: User) -> None:
    rule("mail leaves", Effect.ASK, server="mailer", reason="Mail leaves the house.")
    rule("all", Effect.ALLOW)
    rule("big ones", Effect.DENY, when="args.n > 9")
    rule("others", Effect.DENY).agents.add(Agent.objects.create(name="clerk", owner=bob))
    rule("far away", Effect.DENY, server="db", tool="drop")

    lines = explained("scout", "mailer.send_mail", '{"n": 5}')

    assert lines == [
        "ask: Mail leaves the house.",
        "  ask “mail leaves”: covers it; says ask",
        "  allow “all”: covers it; says allow",
        "  deny “big ones”: its condition does not hold",
        "    args.n = 5",
        "  deny “others”: not for this, it is for other agents",
    ]


def test_it_says_that_nobody_can_approve_it(scout: Agent, bob: User, alice: User) -> None:
    desk = Group.objects.create(name="desk")
    bob.groups.add(desk, Group.objects.get(name=Role.APPROVER))
    alice.groups.add(desk)
    rule("two of the desk", Effect.ASK, thresholds=[{"approve": 2, "from": "group:desk"}])

    # bob may decide on others' calls, and has no vote on his own agent's.
    assert "Nobody can approve it. It needs 2 approvals of desk, and 1 person may give one." in (
        explained("scout", "mailer.send_mail")
    )

    scenery.person("carol", Role.APPROVER).groups.add(desk)
    assert "Nobody" not in "\n".join(explained("scout", "mailer.send_mail"))


def test_arguments_make_the_difference(scout: Agent) -> None:
    rule("big ones", Effect.DENY, when="args.n > 9")

    assert explained("scout", "mailer.send_mail", '{"n": 10}')[0].startswith("deny: ")


def test_a_watched_rule_says_what_it_would(scout: Agent) -> None:
    rule("soon", Effect.DENY, mode=Rule.Mode.SHADOW)

    lines = explained("scout", "mailer.send_mail")

    assert lines[1] == "Watched rule “soon” would make it deny."
    assert "(only watched)" in lines[2]


def test_a_condition_that_fails_is_told(scout: Agent) -> None:
    rule("careful", Effect.ALLOW, when="args.n > 9")

    lines = explained("scout", "mailer.send_mail")

    assert "Key not found in map" in lines[0]
    assert lines[1].endswith("covers it; says ask")


def test_nothing_is_called(scout: Agent) -> None:
    explained("scout", "mailer.send_mail")

    assert not Call.objects.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nobody", "mailer.send_mail"), "no agent “nobody”"),
        (("scout", "mailer.nope"), "No tool is published as “mailer.nope”"),
        (("scout", "mailer.send_mail", '{"a": 1, "a": 2}'), "The arguments: "),
    ],
)
def test_it_says_what_is_not_there(scout: Agent, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        explained(*words)
