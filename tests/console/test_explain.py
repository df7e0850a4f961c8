"""“What would happen if”: as a page, and as a piece of a tool's page."""

import pytest
from django.test import Client

from accounts.models import Agent, User
from accounts.roles import Role
from audit.models import Entry
from calls.models import Call
from policies.models import Rule
from tests.console import scenery

PAGE = "/policies/explain/"
PIECE = "/policies/would/mailer.send_mail/"
ASKED = {"agent": "scout", "tool": "mailer.send_mail", "arguments": '{"n": 5}'}


# It decides, matches, matches and is only watched, does not match.
ORDER = ("mail leaves", "first of all", "only watched", "big ones")


@pytest.fixture
def as_alice(client: Client, alice: User, olga: User, scout: Agent) -> Client:
    scenery.server("mailer", olga, scenery.SEND)
    Rule.objects.create(name="mail leaves", effect="ask", server="mailer", reason="It leaves.")
    Rule.objects.create(name="big ones", effect="deny", when="args.n > 9")
    client.force_login(alice)
    return client


@pytest.mark.long
@pytest.mark.parametrize("address", [PAGE, PIECE])
def test_the_very_answer_and_what_came_close(as_alice: Client, address: str) -> None:
    page = as_alice.get(address, ASKED)

    assert "It leaves." in page.text
    assert "Deciding rule." in page.text
    assert "big ones" in page.text
    assert "No match: its condition does not hold." in page.text


@pytest.mark.long
@pytest.mark.parametrize("address", [PAGE, PIECE])
def test_it_says_that_nobody_can_approve_it(as_alice: Client, address: str) -> None:
    assert "Nobody can approve it." not in as_alice.get(address, ASKED).text
    Rule.objects.filter(name="mail leaves").update(thresholds=[{"approve": 7}])

    page = as_alice.get(address, ASKED).text

    assert "Nobody can approve it. It needs 7 approvals, and " in page


@pytest.mark.long
@pytest.mark.parametrize("address", [PAGE, PIECE])
def test_the_deciding_rule_comes_first(as_alice: Client, address: str) -> None:
    Rule.objects.create(name="first of all", effect="allow", server="mailer", position=1)
    Rule.objects.create(name="only watched", effect="deny", mode="shadow", position=2)

    page = as_alice.get(address, ASKED)

    places = [page.text.index(f'">{name}</span>') for name in ORDER]
    assert places == sorted(places)


def test_arguments_make_the_difference(as_alice: Client) -> None:
    page = as_alice.get(PIECE, {**ASKED, "arguments": '{"n": 10}'})

    assert page.context["explained"].decision.effect == "deny"


def test_nothing_is_answered_before_it_is_asked(as_alice: Client) -> None:
    assert "explained" not in as_alice.get(PIECE).context
    assert "explained" not in as_alice.get(PAGE).context


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"agent": "nobody"}, "no agent “nobody”"),
        ({"arguments": '{"a": 1, "a": 2}'}, "The arguments: "),
        ({"tool": "mailer.nope"}, "No tool is published as “mailer.nope”"),
    ],
)
def test_what_cannot_be_asked_is_said(as_alice: Client, changes: dict[str, str], said: str) -> None:
    assert said in as_alice.get(PAGE, ASKED | changes).text


def test_nothing_is_called_and_nothing_recorded(as_alice: Client) -> None:
    before = Entry.objects.count()

    as_alice.get(PAGE, ASKED)

    assert not Call.objects.exists()
    assert Entry.objects.count() == before


@pytest.mark.parametrize("address", [PAGE, PIECE])
def test_only_those_who_see_rules_may_ask(as_alice: Client, address: str) -> None:
    viewer = scenery.person("vera", Role.VIEWER)
    as_alice.force_login(viewer)

    assert as_alice.get(address, ASKED).status_code == 403
    assert as_alice.post(address, ASKED).status_code == 405


def test_without_agents_it_says_what_to_do(client: Client, alice: User) -> None:
    client.force_login(alice)

    assert "create an agent first" in client.get(PAGE).text
