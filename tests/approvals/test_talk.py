"""Votes on the card, and what people and the agent say to each other while a call is held."""

import re
from uuid import UUID

import orjson
import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, Passkey, User
from accounts.relying_party import rp_id
from accounts.roles import Role
from approvals import comments, editing, services
from approvals.comments import CommentRefused
from approvals.models import Approval, Comment, Vote
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from policies.thresholds import Distinct, StepUp, Threshold
from registry.models import Tool
from tests.console import scenery

pytestmark = pytest.mark.django_db


@pytest.fixture
def send_mail(olga: User) -> Tool:
    return scenery.server("mailer", olga, scenery.SEND).tools.get()


@pytest.fixture
def held(scout: Agent, send_mail: Tool) -> UUID:
    two = (Threshold(approve=2),)
    return scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=two)


@pytest.fixture
def as_alice(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


@pytest.fixture
def carol(db: None) -> User:
    return scenery.person("carol", Role.APPROVER)


def press(client: Client, verb: str, held: UUID, *, htmx: bool = False, **fields: str) -> str:
    data = {"seen": Call.objects.get(pk=held).call_digest, **fields}
    headers = {"HX-Request": "true"} if htmx else {}
    address = reverse(f"approvals:{verb}", args=[held])
    return client.post(address, data, headers=headers, follow=not htmx).text


def card(client: Client, held: UUID) -> str:
    return client.get(reverse("approvals:detail", args=[held])).text


# -- Votes ----------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_card_shows_whose_word_is_there_and_whose_is_missing(
    as_alice: Client, held: UUID, carol: User
) -> None:
    page = press(as_alice, "approve", held, htmx=True, reason="Fine\u202e.")

    assert "Needed: 2 approvals; 1 denial decides" in page
    assert "<strong>1 of 2</strong>, 1 is missing" in page
    assert "“Fine" in page
    assert "⟦U+202E⟧" in page
    assert "May still vote: carol" in " ".join(page.split())
    assert "Take your vote back" in page
    assert 'name="seen"' not in page


def test_a_call_that_one_person_decides_shows_no_counting(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    plain = scenery.call(scout, send_mail, scenery.MAIL, State.HELD)

    assert "is missing" not in card(as_alice, plain)


@pytest.mark.long
def test_a_vote_is_taken_back_on_the_card(as_alice: Client, held: UUID, carol: User) -> None:
    said = press(as_alice, "approve", held)
    assert "It needs votes of others" in said

    page = press(as_alice, "take_back", held, htmx=True)

    assert "Take your vote back" not in page
    assert 'name="seen"' in page
    assert Vote.objects.standing().count() == 0
    assert "You have no vote here" in press(as_alice, "take_back", held)


@pytest.mark.long
def test_who_is_too_late_to_take_it_back_is_told_who_decided(
    client: Client, held: UUID, alice: User, carol: User
) -> None:
    for person in (alice, carol):
        client.force_login(person)
        press(client, "approve", held)

    client.force_login(alice)

    assert "carol answered first: Approved" in press(client, "take_back", held, htmx=True)


@pytest.mark.long
def test_a_vote_that_no_longer_counts_is_said_to(
    as_alice: Client, alice: User, held: UUID, carol: User, client: Client
) -> None:
    press(as_alice, "approve", held)
    alice.groups.clear()
    client.force_login(carol)

    page = card(client, held)

    assert "does not count: may no longer decide" in page
    assert "<strong>0 of 2</strong>" in page


def words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", "", page).split())


def say(held: UUID, by: User, *, approve: bool = True) -> None:
    approval = Approval.objects.for_queue().get(pk=held)
    digest = approval.call.call_digest
    services.vote(approval, by=by, approve=approve, seen_digest=digest)


def test_the_second_of_a_team_is_told_why_it_does_not_count_and_a_third_is_not_asked(
    as_alice: Client, scout: Agent, send_mail: Tool, carol: User, alice: User
) -> None:
    teams = (Threshold(approve=2, distinct=Distinct.TEAM),)
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=teams)
    north = Group.objects.create(name="north")
    dora, erik = (scenery.person(name, Role.APPROVER) for name in ("dora", "erik"))
    for one in (carol, dora, erik):
        one.groups.add(north)
    say(held, carol)
    say(held, dora)

    page = words(card(as_alice, held))

    assert page.count("does not count: of a team that has approved already") == 1
    assert "May still vote: alice" in page
    assert "Whose approval would not count: erik (of a team that has approved already)" in page


def test_who_cannot_confirm_as_the_rule_asks_is_not_listed_as_a_voter(
    as_alice: Client, scout: Agent, send_mail: Tool, carol: User, alice: User
) -> None:
    asked = (Threshold(approve=2, step_up=StepUp.PASSKEY),)
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=asked)
    Passkey.objects.create(
        person=carol,
        name="Laptop",
        credential_id=b"1",
        public_key=b"1",
        rp_id=rp_id(),
        sign_count=0,
        synced=False,
    )
    User.objects.filter(pk=scenery.person("gast", Role.APPROVER).pk).update(
        let_in_by=alice, password="!"
    )

    page = words(card(as_alice, held))

    assert "May still vote: carol" in page
    said = (
        "Whose approval would not count: alice (has no passkey), gast (has to set a password first)"
    )
    assert said in page


@pytest.mark.long
def test_a_vote_that_fell_is_still_told(
    client: Client, scout: Agent, held: UUID, alice: User, carol: User
) -> None:
    say(held, alice)
    services.take_back(Approval.objects.for_queue().get(pk=held), by=alice)
    say(held, alice)
    client.force_login(carol)
    before = words(card(client, held))
    editing.edit(
        Approval.objects.for_queue().get(pk=held),
        editing.Edit(
            seen_digest=Call.objects.get(pk=held).call_digest,
            arguments=orjson.dumps(scenery.MAIL | {"subject": "Other"}),
        ),
        by=carol,
    )

    page = words(card(client, held))

    assert before.count("Taken back") == 1
    assert page.count("Taken back") == 1
    assert page.count("The arguments were edited afterwards") == 1


def test_what_was_sent_long_ago_is_not_counted_anew(
    client: Client, held: UUID, alice: User, carol: User
) -> None:
    say(held, alice)
    say(held, carol)
    scenery.run(held)
    alice.groups.clear()
    client.force_login(carol)

    assert "does not count" not in card(client, held)


# -- Comments and questions -----------------------------------------------------------------------


@pytest.mark.long
def test_what_is_said_stands_on_the_card_and_in_the_record(as_alice: Client, held: UUID) -> None:
    page = press(as_alice, "say", held, htmx=True, text="Is that the\u202e right Ana?")

    assert "Comments (1)" in page
    assert "⟦U+202E⟧" in page
    assert "Is that the" in card(as_alice, held)
    entry = Entry.objects.get(action="approval.comment")
    assert (entry.actor, entry.call_id) == ("alice", held)


def test_the_page_of_comments_is_part_of_the_queue_while_the_call_is_pending(
    as_alice: Client, held: UUID
) -> None:
    address = reverse("approvals:talk", args=[held])
    assert as_alice.get(address).context["section"] == "queue"

    approval = Approval.objects.for_queue().get(pk=held)
    alice = User.objects.get(username="alice")
    services.vote(approval, by=alice, approve=False, seen_digest=approval.call.call_digest)

    assert as_alice.get(address).context["section"] == "calls"


@pytest.mark.long
def test_a_question_waits_until_the_agent_answers(
    as_alice: Client, held: UUID, scout: Agent
) -> None:
    press(as_alice, "say", held, text="Why five copies?", to="agent")
    assert comments.open_questions(held) == ["Why five copies?"]

    comments.answer(held, agent=scout.actor, text="One for each of us.")

    assert comments.open_questions(held) == []
    page = card(as_alice, held)
    assert page.index("Why five copies?") < page.index("One for each of us.")
    assert [c.by for c in Comment.objects.all()] == ["alice", "scout"]


@pytest.mark.long
def test_whom_the_call_is_for_may_explain_it_and_not_ask(
    client: Client, held: UUID, bob: User
) -> None:
    client.force_login(bob)

    press(client, "say", held, text="I asked for it.")
    refused = press(client, "say", held, text="Why?", to="agent")

    assert "not among those who decide" in refused
    assert Comment.objects.get().text == "I asked for it."
    assert "I asked for it." in client.get(reverse("approvals:talk", args=[held])).text


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "said"), [("", "Say something"), ("x" * 4001, "At most 4000"), ("a\0b", "Error 400")]
)
def test_what_cannot_be_said(as_alice: Client, held: UUID, text: str, said: str) -> None:
    assert said in press(as_alice, "say", held, htmx=True, text=text)
    assert not Comment.objects.exists()


def test_an_agent_cannot_flood_those_who_decide(held: UUID, scout: Agent) -> None:
    for n in range(comments.MOST_BY_AGENT):
        comments.answer(held, agent=scout.actor, text=f"{n}")

    with pytest.raises(CommentRefused, match="enough was said"):
        comments.answer(held, agent=scout.actor, text="And another thing.")


def test_another_agent_does_not_answer(held: UUID, bob: User) -> None:
    other = Agent.objects.create(name="other", owner=bob)

    with pytest.raises(CommentRefused, match="No call of yours"):
        comments.answer(held, agent=other.actor, text="It is fine.")


def test_nothing_is_said_once_it_is_decided(as_alice: Client, held: UUID, scout: Agent) -> None:
    press(as_alice, "refuse", held)

    assert "is no longer pending" in press(as_alice, "say", held, text="Too late.")
    with pytest.raises(CommentRefused):
        comments.answer(held, agent=scout.actor, text="Too late.")


@pytest.mark.parametrize(("who", "status"), [("mallory", 403), ("olga", 404)])
def test_who_may_not_see_it_says_nothing(
    client: Client, held: UUID, olga: User, mallory: User, who: str, status: int
) -> None:
    client.force_login(User.objects.get(username=who))

    address = reverse("approvals:say", args=[held])

    assert client.post(address, {"text": "Hello."}).status_code == status
    assert client.get(reverse("approvals:talk", args=[held])).status_code == status
    assert client.get(address).status_code == 405


def test_tabs_hear_of_votes_and_comments_on_what_they_show(
    as_alice: Client, held: UUID, carol: User, alice: User
) -> None:
    approval = Approval.objects.for_queue().get(pk=held)
    comments.say(approval, by=carol, text="I would not.")

    page = as_alice.get(reverse("approvals:news"), {"shown": [str(held)], "open": str(held)}).text

    assert f'id="votes-{held}" hx-swap-oob="true"' in page
    assert "I would not." in page
    assert f'<span id="said-n-{held}" hx-swap-oob="true">Comments (1)</span>' in page
    assert as_alice.get(reverse("approvals:news"), {"shown": "x"}).status_code == 200


@pytest.mark.long
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE approvals_comment SET text = 'x'",
        "DELETE FROM approvals_comment",
        "UPDATE approvals_vote SET approve = NOT approve",
        "UPDATE approvals_vote SET fallen_at = now(), fallen_why = 'taken_back', reason = 'x'",
        "UPDATE approvals_vote SET fallen_at = now()",
        "DELETE FROM approvals_vote",
    ],
)
def test_what_was_said_is_not_rewritten(
    as_alice: Client, held: UUID, carol: User, statement: str
) -> None:
    press(as_alice, "say", held, text="Hm.")
    press(as_alice, "approve", held)

    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
