"""Held calls whose arguments people change: checked, judged and voted on anew, and told."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now, Trunc
from django.http import HttpResponse
from django.test import Client

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import editing, services
from approvals.editing import Edit, EditRefused
from approvals.models import Approval, Vote
from approvals.services import DecisionRefused
from audit.models import Entry
from calls.content.amendments import modified
from calls.content.answers import build_answer
from calls.models import Amendment, Call
from calls.queue.claiming import claim
from calls.record.states import State
from core import strict_json
from core.ids import uuid7
from gateway.protocol import replies
from policies.models import Effect, LimitCounter, LimitUse, Rule
from policies.services import save_rule
from policies.thresholds import Threshold, stored
from registry.models import Tool
from tests.approvals.test_quorum import approver, say
from tests.console import scenery
from tests.forms import submitted
from tests.gateway.limiting import add_limit

pytestmark = pytest.mark.django_db

EDITED = {**scenery.MAIL, "subject": "Minutes of Wednesday"}


@pytest.fixture
def send_mail(olga: User, scout: Agent) -> Tool:
    return scenery.offered(scout, scenery.server("mailer", olga, scenery.SEND).tools.get())


@pytest.fixture
def carol(db: None) -> User:
    return scenery.person("carol", Role.APPROVER)


@pytest.fixture
def held(scout: Agent, send_mail: Tool) -> UUID:
    return scenery.call(scout, send_mail, scenery.MAIL, State.HELD)


def approval_of(call_id: UUID) -> Approval:
    return Approval.objects.for_queue().get(pk=call_id)


def edit(call_id: UUID, by: User, arguments: Any = EDITED, **changes: Any) -> None:
    approval = approval_of(call_id)
    body = arguments if isinstance(arguments, bytes) else orjson.dumps(arguments)
    asked = {"seen_digest": approval.call.call_digest, "arguments": body, **changes}
    editing.edit(approval, Edit(**asked), by=by)


def rule(name: str, effect: Effect, when: str = "", **fields: Any) -> None:
    made = Rule(name=name, effect=effect, when=when, position=10, **fields)
    save_rule(made, by=scenery.person(f"writer of {name}").actor)


def change(client: Client, call_id: UUID, **changes: str) -> HttpResponse:
    """What a browser sends from the page."""
    address = f"/queue/{call_id}/edit/"
    page = client.get(address).content.decode()
    names = {label: name for name, label in _named(page)}
    given = {names.get(name, name): value for name, value in changes.items()}
    return client.post(address, submitted(page, **given))  # type: ignore[return-value]


def _named(page: str) -> list[tuple[str, str]]:
    """(field's name in HTML, argument)."""
    pattern = r'<label for="field-(f[\d-]*)"><span class="mono">([^<]*)</span>'
    return [(key.replace("-", "."), label) for key, label in re.findall(pattern, page)]


def test_somebody_else_approves_what_was_edited(held: UUID, alice: User, carol: User) -> None:
    edit(held, alice)

    assert say(held, carol) == State.QUEUED

    sending = claim(held, owner="here")
    assert sending is not None
    assert orjson.loads(sending.arguments) == EDITED


def test_the_editor_does_not_approve_it(held: UUID, alice: User) -> None:
    edit(held, alice)

    with pytest.raises(DecisionRefused, match="You edited the arguments"):
        say(held, alice)
    with pytest.raises(DatabaseError, match="that they edited"), transaction.atomic():
        Vote.objects.create(
            approval_id=held,
            person=alice,
            approve=True,
            seen_digest=Call.objects.get(pk=held).call_digest,
        )


def test_no_editor_approves_it_first_or_last(held: UUID, alice: User, carol: User) -> None:
    edit(held, alice)
    edit(held, carol, {**EDITED, "subject": "Minutes"})

    for editor in (alice, carol):
        with pytest.raises(DecisionRefused, match="You edited the arguments"):
            say(held, editor)
    assert say(held, scenery.person("dora", Role.APPROVER)) == State.QUEUED


def test_earlier_votes_fall(scout: Agent, send_mail: Tool, alice: User, carol: User) -> None:
    held = scenery.call(
        scout, send_mail, scenery.MAIL, State.HELD, thresholds=[Threshold(approve=2)]
    )
    say(held, alice)

    edit(held, carol)

    assert [vote.fallen_why for vote in Vote.objects.all()] == [Vote.Fallen.EDITED]
    assert say(held, alice) == State.HELD
    assert say(held, scenery.person("dora", Role.APPROVER)) == State.QUEUED


def test_a_vote_on_what_it_was_before_counts_for_nothing(
    held: UUID, alice: User, carol: User
) -> None:
    seen = approval_of(held).call.call_digest
    edit(held, alice)

    with pytest.raises(DecisionRefused, match="Look again"):
        services.vote(approval_of(held), by=carol, approve=True, seen_digest=seen)


def test_two_edits_of_the_same_are_one(held: UUID, alice: User, carol: User) -> None:
    seen = approval_of(held).call.call_digest
    edit(held, alice)

    with pytest.raises(DecisionRefused, match="Look again"):
        edit(held, carol, {**EDITED, "subject": "Other"}, seen_digest=seen)

    assert Amendment.objects.count() == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (b'{"to": [], "to": []}', "appears twice"),
        (b'{"to": ["a@b.c"], "subject": "x", "body": "y", "options": {"copies": 9}}', "schema"),
        (b"[]", "schema"),
        (orjson.dumps(scenery.MAIL), "Nothing was changed"),
    ],
)
def test_what_the_door_would_refuse_is_refused(
    held: UUID, alice: User, arguments: bytes, said: str
) -> None:
    with pytest.raises(EditRefused, match=said):
        edit(held, alice, arguments)

    assert not Amendment.objects.exists()


def test_an_edit_never_crosses_a_deny(held: UUID, alice: User) -> None:
    rule("no wednesdays", Effect.DENY, 'args.subject.endsWith("Wednesday")')

    with pytest.raises(EditRefused, match="A rule forbids"):
        edit(held, alice)


def test_an_edit_raises_the_quorum(held: UUID, alice: User, carol: User) -> None:
    rule("two", Effect.ASK, 'args.subject.endsWith("Wednesday")', thresholds=[{"approve": 2}])

    edit(held, alice)

    assert stored(approval_of(held).thresholds) == (Threshold(approve=2),)
    assert say(held, carol) == State.HELD


def test_an_edit_never_lowers_the_quorum(
    scout: Agent, send_mail: Tool, alice: User, carol: User
) -> None:
    rule("free", Effect.ALLOW, 'args.subject.endsWith("Wednesday")')
    held = scenery.call(
        scout, send_mail, scenery.MAIL, State.HELD, thresholds=[Threshold(approve=2)]
    )

    edit(held, alice)

    assert say(held, carol) == State.HELD


def test_where_rules_ask_different_people_both_have_to_agree(
    scout: Agent, send_mail: Tool, alice: User
) -> None:
    of_it, of_cfo = approver("carol", "it"), approver("dora", "cfo")
    rule(
        "cfo", Effect.ASK, 'args.subject.endsWith("Wednesday")', thresholds=[{"from": "group:cfo"}]
    )
    held = scenery.call(
        scout, send_mail, scenery.MAIL, State.HELD, thresholds=[Threshold(source="group:it")]
    )

    edit(held, alice)

    assert say(held, of_it) == State.HELD
    assert say(held, of_cfo) == State.QUEUED


def test_who_may_not_decide_may_not_edit(
    held: UUID, bob: User, mallory: User, client: Client, carol: User
) -> None:
    for person in (bob, mallory):
        with pytest.raises(EditRefused):
            edit(held, person)
        client.force_login(person)
        assert client.get(f"/queue/{held}/edit/").status_code == 403


def test_the_owner_may_not_edit_even_as_an_approver(scout: Agent, held: UUID) -> None:
    owner = scenery.person("owner", Role.APPROVER)
    Agent.objects.filter(pk=scout.pk).update(owner=owner)

    with pytest.raises(EditRefused, match="The agent is yours"):
        edit(held, owner)


def test_too_late_is_said(held: UUID, alice: User, carol: User) -> None:
    say(held, carol)

    with pytest.raises(DecisionRefused, match="carol answered first"):
        edit(held, alice)


def test_the_page_changes_one_field_and_keeps_the_others(
    client: Client, held: UUID, alice: User, carol: User
) -> None:
    client.force_login(alice)

    answer = change(client, held, subject="Minutes of Wednesday", note="It was Wednesday.")

    assert answer.status_code == 302
    call = Call.objects.get(pk=held)
    assert orjson.loads(call.to_send) == EDITED
    assert Entry.objects.get(action="call.amended").reason == "It was Wednesday."
    client.force_login(carol)
    page = client.get(f"/queue/{held}/").content.decode()
    assert "<strong>alice</strong> edited the arguments" in page
    assert "&quot;Minutes of Tuesday&quot;" in page
    assert "It was Wednesday." in page
    assert call.fingerprint in page


def test_the_card_names_the_rule_that_asks_because_of_the_edit(
    client: Client, held: UUID, alice: User, carol: User
) -> None:
    rule("Mails of Wednesday", Effect.ASK, 'args.subject.contains("Wednesday")', reason="Odd day.")

    edit(held, alice)

    client.force_login(carol)
    page = " ".join(client.get(f"/queue/{held}/").content.decode().split())
    assert "It requires approval: No rule covers this call, so a person decides." in page
    assert "As edited, the rule “Mails of Wednesday” requires approval too: Odd day." in page
    edit(held, carol, scenery.MAIL | {"subject": "On Wednesday"})
    page = client.get(f"/queue/{held}/").content.decode()
    assert page.count("As edited, the rule") == 1


def test_an_edit_for_which_the_same_rule_asks_names_no_other(
    client: Client, held: UUID, alice: User, carol: User
) -> None:
    edit(held, alice)

    client.force_login(carol)
    page = client.get(f"/queue/{held}/").content.decode()
    assert "As edited" not in page


def test_the_page_says_at_which_field_it_is_wrong(
    client: Client, held: UUID, alice: User, carol: User
) -> None:
    client.force_login(alice)

    answer = change(client, held, copies="9", note="kept")

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "must be at most 5" in page
    assert 'value="9"' in page
    assert "kept</textarea>" in page
    assert not Amendment.objects.exists()


def test_the_page_says_beforehand_who_can_approve(
    client: Client, held: UUID, alice: User, carol: User
) -> None:
    client.force_login(alice)

    assert "It can be approved by carol" in client.get(f"/queue/{held}/edit/").content.decode()

    carol.groups.clear()
    page = client.get(f"/queue/{held}/edit/").content.decode()
    assert "Nobody else can approve what you change here" in page
    answer = change(client, held, copies="2")
    assert answer.status_code == 422
    assert "Nothing was changed." in answer.content.decode()
    assert not Amendment.objects.exists()


def test_an_item_is_added_without_anything_being_proposed(
    client: Client, held: UUID, alice: User
) -> None:
    client.force_login(alice)

    answer = change(client, held, do="add f.0")

    assert answer.status_code == 200
    assert 'name="f.0.1"' in answer.content.decode()
    assert not Amendment.objects.exists()


def body_of(call_id: UUID, *, private: bool = False, **given: Any) -> dict[str, Any]:
    """What an agent of the newer protocol gets."""
    call = Call.objects.get(pk=call_id)
    found = modified(bytes(call.arguments), call.to_send, private=private)
    answer = build_answer(call_id, State.SUCCEEDED, "", "yes", given["kind"], given["body"])
    told = replace(answer, modified=found)
    document: dict[str, Any] = strict_json.loads(replies.of(told, b"1", modern=True))
    return document


@pytest.mark.parametrize(
    "body",
    [
        b'{"content": [{"type": "text", "text": "sent"}]}',
        b'{"content":[]}',
        b'{"content":[],"_meta":{"x":1}}',
        b'{"content":[ ],"structuredContent":{"content":[1]}}',
    ],
)
def test_the_agent_is_told_what_was_changed(held: UUID, alice: User, body: bytes) -> None:
    edit(held, alice)

    result = body_of(held, kind="result", body=body)["result"]

    assert result["_meta"]["countersign/arguments_modified"] == [
        {"path": "$.subject", "before": "Minutes of Tuesday", "after": "Minutes of Wednesday"}
    ]
    said = result["content"][-1]["text"]
    assert 'subject: "Minutes of Tuesday" → "Minutes of Wednesday"' in said
    assert result["content"][:-1] == orjson.loads(body)["content"]


def test_the_agent_is_told_no_more_than_the_editor_allows(held: UUID, alice: User) -> None:
    edit(held, alice, private=True)

    body = b'{"content":[]}'
    result = body_of(held, kind="result", body=body, private=True)["result"]

    assert result["_meta"]["countersign/arguments_modified"] is True
    assert "Wednesday" not in str(result)


def test_an_error_of_the_server_carries_it_too(held: UUID, alice: User) -> None:
    edit(held, alice)

    error = body_of(held, kind="error", body=b'{"code":-1,"message":"no"}')["error"]

    assert error["data"]["countersign/arguments_modified"][0]["path"] == "$.subject"
    assert (error["code"], error["message"]) == (-1, "no")


def count_copies(most: int, *, spent: int) -> LimitCounter:
    """A budget of this month, so far spent."""
    budget = add_limit("cost", most, cost_argument="options.copies", name="Copies", period="month")
    made = LimitCounter.objects.create(limit=budget, key="", label="", spent=spent)
    LimitCounter.objects.update(since=Trunc(Now(), "month", tzinfo=UTC))
    return made


def test_what_it_costs_now_has_to_fit_into_its_budget(held: UUID, alice: User) -> None:
    counter = count_copies(10, spent=8)
    LimitUse.objects.create(counter=counter, call_id=held, amount=1)

    def copies(n: int) -> dict[str, Any]:
        return {**scenery.MAIL, "options": {"copies": n}}

    with pytest.raises(EditRefused, match="Limit “Copies” is reached: 10 EUR per month"):
        edit(held, alice, copies(4))
    with pytest.raises(EditRefused, match="has to be a number"):
        edit(held, alice)
    edit(held, alice, copies(3))

    counter.refresh_from_db()
    assert counter.spent == 10
    assert counter.uses.get().amount == 3


def test_what_was_never_opened_leaves_room(held: UUID, alice: User) -> None:
    counter = count_copies(4, spent=4)
    LimitUse.objects.create(counter=counter, call_id=held, amount=1)
    LimitUse.objects.create(counter=counter, call_id=uuid7(), amount=3)

    edit(held, alice, {**scenery.MAIL, "options": {"copies": 3}})

    counter.refresh_from_db()
    assert counter.spent == 3


@pytest.mark.parametrize("settled", [True, False], ids=["others came since", "nobody came since"])
def test_what_it_costs_is_counted_in_the_present_window(
    settled: bool, held: UUID, alice: User
) -> None:
    budget = add_limit("cost", 3, cost_argument="options.copies", name="Copies", period="month")
    began = datetime(2026, 1, 1, tzinfo=UTC)
    counter = LimitCounter.objects.create(limit=budget, key="", label="", spent=8, since=began)
    LimitUse.objects.create(counter=counter, call_id=held, amount=4)
    # One whose outcome was never opened: its part of the window before is nobody's.
    LimitUse.objects.create(counter=counter, call_id=uuid7(), amount=4)
    if settled:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT calls_settle_limit({counter.pk}, 'cost', 'month', 3, 0)")
        LimitCounter.objects.update(spent=1)
    free = 2 if settled else 3

    def copies(n: int) -> dict[str, Any]:
        return {**scenery.MAIL, "options": {"copies": n}}

    with pytest.raises(EditRefused, match="Limit “Copies” is reached: 3 EUR per month"):
        edit(held, alice, copies(free + 1))
    edit(held, alice, copies(free))

    counter.refresh_from_db()
    assert counter.spent == 3
    assert counter.since is not None
    assert counter.since > began
    assert counter.uses.get(call_id=held).amount == free
