"""Approving several pending calls in one step, which differ in values of arguments alone."""

import re
from datetime import timedelta
from html import unescape
from io import StringIO
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.core.management import call_command
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import role_changes
from accounts.models import Agent, CodeApp, Proof, User
from accounts.roles import Role
from approvals import comments, editing, services
from approvals.alike_calls import MOST
from approvals.models import Approval, Vote
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from policies.models import Rule
from policies.thresholds import StepUp, Threshold
from registry.models import Tool
from tests.accounts.authenticator import Device
from tests.approvals.test_stepping import passkey
from tests.console import scenery
from tests.publishing import publish_as_read

HERE = reverse("approvals:approve_alike")
ONE_PASSKEY = (Threshold(step_up=StepUp.PASSKEY),)
ONE_CODE = (Threshold(step_up=StepUp.TOTP),)


@pytest.fixture
def three(scout: Agent, send_mail: Tool) -> list[UUID]:
    return hold(scout, send_mail, 3)


def hold(agent: Agent, tool: Tool, n: int, **changes: Any) -> list[UUID]:
    return [
        scenery.call(
            agent, tool, {**scenery.MAIL, "subject": f"Minutes {one}"}, State.HELD, **changes
        )
        for one in range(n)
    ]


def look(client: Client, calls: list[UUID]) -> str:
    return client.get(HERE, {"call": [str(one) for one in calls]}).text


def posted(page: str) -> list[str]:
    return re.findall(r'<input type="hidden" name="call" value="([^"]+)"', page)


def edit(change: Approval, by: User) -> None:
    arguments = orjson.dumps({**scenery.MAIL, "subject": "Edited"})
    editing.edit(change, editing.Edit(change.call.call_digest, arguments), by=by)


def approve(client: Client, calls: list[str], **fields: Any) -> str:
    return plain(client.post(HERE, {"call": calls, **fields}, follow=True).text)


def plain(page: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page)))


def states(calls: list[UUID]) -> list[str]:
    return [Call.objects.get(pk=one).state for one in calls]


def fingerprint(call_id: UUID) -> str:
    return Call.objects.get(pk=call_id).fingerprint


@pytest.mark.long
def test_alike_calls_are_approved_each_with_its_own_vote_and_entry(
    as_alice: Client, alice: User, three: list[UUID]
) -> None:
    page = look(as_alice, three)

    said = approve(as_alice, posted(page), reason="All three.")

    assert "You approved 3 calls. They are sent now." in said
    assert states(three) == [State.QUEUED] * 3
    for call_id in three:
        vote = Vote.objects.get(approval=call_id)
        assert (vote.person, vote.approve, vote.reason) == (alice, True, "All three.")
        assert vote.seen_digest == Call.objects.get(pk=call_id).call_digest
        entry = Entry.objects.of_call(call_id).get(action="approval.voted")
        assert entry.details["together"] == 3


def test_what_differs_is_a_table_and_what_is_equal_is_listed_once(
    as_alice: Client, three: list[UUID]
) -> None:
    page = look(as_alice, three)
    table, rest = page.split("</table>", 1)
    table = table[table.index("<table") :]

    assert re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table) == ["Call", "subject", "Expires"]
    for n, call_id in enumerate(three):
        assert f"Minutes {n}" in table
        assert fingerprint(call_id) in table
    assert "ana@example.org" not in table
    assert rest.count("ana@example.org") == 1
    for label in ("Agent", "User", "Tool", "Definition", "Rule", "Needed", "Risk"):
        assert f"<dt>{label}</dt>" in rest
    assert "Everything that their cards show is equal" in page


@pytest.mark.long
def test_nested_arguments_are_named_with_what_is_around_them(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    calls = [
        scenery.call(
            scout, send_mail, {**scenery.MAIL, "options": {"priority": priority}}, State.HELD
        )
        for priority in ("low", "high")
    ]

    page = look(as_alice, calls)

    assert 'data-label="options.priority"' in page
    # A group of which nothing is equal says nothing.
    assert "1 member" not in page


def test_what_every_card_warns_of_stands_here_too(
    as_alice: Client, alice: User, bob: User, scout: Agent, send_mail: Tool
) -> None:
    # Nobody confirmed her, and who let her in owns the agent.
    User.objects.filter(pk=alice.pk).update(
        invited_by=bob, unconfirmed_until=timezone.now() - timedelta(days=1)
    )
    role_changes.note_granted(alice, Role.APPROVER, by=None)
    calls = hold(scout, send_mail, 2, origin=Call.Origin.COMMAND)

    said = plain(look(as_alice, calls))

    assert "Who may decide changed in the last 7 days" in said
    assert "may be someone who has a part in this call: alice" in said
    assert "Asked at the host's command line, without a token." in said


def test_what_is_left_to_defaults_is_shown_where_every_argument_differs(
    as_alice: Client, scout: Agent, olga: User
) -> None:
    add = {
        "name": "add",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "all": {"type": "boolean", "default": True}},
        },
    }
    tool = scenery.server("sums", olga, add).tools.for_catalogue().get()
    calls = [scenery.call(scout, tool, {"a": a}, State.HELD) for a in (1, 2)]

    assert re.search(r"Not given: all \( ?default true ?\)", plain(look(as_alice, calls)))


@pytest.mark.long
def test_where_others_have_to_vote_the_votes_are_counted(
    as_alice: Client, alice: User, scout: Agent, send_mail: Tool
) -> None:
    calls = hold(scout, send_mail, 2, thresholds=(Threshold(approve=2),))

    said = approve(as_alice, posted(look(as_alice, calls)))

    assert "Your votes to approve 2 calls are counted. Others have to give theirs." in said
    assert states(calls) == [State.HELD] * 2
    carol = Client()
    carol.force_login(scenery.person("carol", Role.APPROVER))
    assert "Votes alice" in plain(look(carol, calls))
    # Whoever has voted does not vote again.
    assert "You approved it already" in plain(look(as_alice, calls))
    approve(carol, posted(look(carol, calls)))
    assert states(calls) == [State.QUEUED] * 2


@pytest.mark.long
@pytest.mark.parametrize(
    "label", ["Agent", "Tool", "Rule", "Needed", "Names and types of arguments", "Risk"]
)
def test_calls_that_differ_in_anything_else_are_not_approved_together(
    as_alice: Client, bob: User, olga: User, scout: Agent, send_mail: Tool, label: str
) -> None:
    (one,) = hold(scout, send_mail, 1)
    mail = {**scenery.MAIL, "subject": "Other"}
    match label:
        case "Agent":
            other = scenery.call(
                Agent.objects.create(name="clerk", owner=bob), send_mail, mail, State.HELD
            )
        case "Tool":
            add = scenery.server("sums", olga, scenery.ADD).tools.for_catalogue().get()
            other = scenery.call(scout, add, {"a": 1, "b": 2}, State.HELD)
        case "Rule":
            rule = Rule.objects.create(name="Mails", effect="ask")
            other = scenery.call(
                scout, send_mail, mail, State.HELD, rule_id=rule.pk, rule="Mails", reason="Mail."
            )
        case "Needed":
            other = scenery.call(
                scout, send_mail, mail, State.HELD, thresholds=(Threshold(approve=2),)
            )
        case "Risk":
            other = scenery.call(scout, send_mail, {**mail, "body": "Hidden\u200b."}, State.HELD)
        case _:
            del mail["options"]
            other = scenery.call(scout, send_mail, mail, State.HELD)

    page = look(as_alice, [one, other])

    assert "These calls are not alike" in page
    assert f"<dt>{label}</dt>" in page
    assert posted(page) == []
    # Whoever posts what two pages showed.
    both = posted(look(as_alice, [one])) + posted(look(as_alice, [other]))
    assert len(both) == 2
    assert "These calls are not alike" in approve(as_alice, both)
    assert states([one, other]) == [State.HELD] * 2


@pytest.mark.long
def test_calls_that_need_a_look_of_their_own_are_left_out_and_named(
    as_alice: Client, alice: User, bob: User, scout: Agent, send_mail: Tool
) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    plain_one, edited, commented, denied = hold(scout, send_mail, 4)
    again = scenery.call(
        scout, send_mail, {**scenery.MAIL, "subject": "Again"}, State.HELD, details={"again": ""}
    )
    change = Approval.objects.get(pk=edited)
    edit(change, carol)
    comments.say(Approval.objects.get(pk=commented), by=carol, text="Is it new?", ask_agent=False)
    first = Approval.objects.get(pk=denied)
    services.vote(first, by=carol, approve=False, seen_digest=first.call.call_digest)
    (like_denied,) = [
        scenery.call(
            scout, send_mail, {**scenery.MAIL, "subject": "Minutes 3"}, State.HELD,
        )
    ]  # fmt: skip

    page = look(as_alice, [plain_one, edited, commented, denied, again, like_denied])

    said = plain(page)
    for call_id, why in [
        (edited, "Its arguments were edited: decide on it alone."),
        (commented, "It has comments: decide on it alone."),
        (denied, "carol answered first: Denied."),
        (again, "It is sent again on purpose: decide on it alone."),
        (like_denied, "A call with the same arguments was denied: decide on it alone."),
    ]:
        assert f"{fingerprint(call_id)} {why}" in said
    assert [one.split(":")[0] for one in posted(page)] == [str(plain_one)]


def test_ones_own_call_is_left_out(client: Client, bob: User, three: list[UUID]) -> None:
    client.force_login(bob)

    page = look(client, three)

    assert "The agent is yours: another user must decide." in page
    assert "Nothing to approve together" in page
    forged = [f"{one}:{Call.objects.get(pk=one).call_digest}:{'0' * 16}" for one in three]
    assert "Not approved:" in approve(client, forged)
    assert states(three) == [State.HELD] * 3


@pytest.mark.long
def test_what_changed_since_it_was_shown_is_left_out_and_named(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    two = (Threshold(approve=2),)
    kept, changed, decided, voted, gone = hold(scout, send_mail, 5, thresholds=two)
    shown = posted(look(as_alice, [kept, changed, decided, voted, gone]))
    before = fingerprint(changed)
    change = Approval.objects.get(pk=changed)
    edit(change, carol)
    services.cancel(decided, by=scout.actor)
    seen = Approval.objects.get(pk=voted)
    services.vote(seen, by=carol, approve=True, seen_digest=seen.call.call_digest)
    Approval.objects.filter(pk=gone).update(decide_by=timezone.now())

    said = approve(as_alice, shown)

    assert fingerprint(changed) != before
    assert "Your vote to approve 1 call is counted." in said
    assert f"Not approved: mailer.send_mail {fingerprint(changed)}. Its arguments were" in said
    assert (
        f"Not approved: mailer.send_mail {fingerprint(decided)}. The call is no longer pending"
        in said
    )
    assert f"mailer.send_mail {fingerprint(voted)}. What its card shows has changed." in said
    assert f"Not approved: mailer.send_mail {fingerprint(gone)}. The time to decide" in said
    votes = Vote.objects.filter(person__username="alice").values_list("approval", flat=True)
    assert list(votes) == [kept]


@pytest.mark.long
def test_a_changed_definition_supersedes_instead(
    as_alice: Client, olga: User, send_mail: Tool, three: list[UUID]
) -> None:
    shown = posted(look(as_alice, three))
    changed = {**scenery.SEND, "description": "Sends it to everybody."}
    scenery.see(send_mail.server, changed)
    publish_as_read(send_mail.server, by=olga)

    said = approve(as_alice, shown)

    assert "Not approved:" in said
    assert "You approved" not in said
    assert State.QUEUED not in states(three)


@pytest.mark.long
@pytest.mark.parametrize("forge", ["digest", "basis", "unknown", "nonsense"])
def test_forged_calls_are_not_approved(as_alice: Client, three: list[UUID], forge: str) -> None:
    first, *_rest = posted(look(as_alice, three))
    call_id, digest, basis = first.split(":")
    value = {
        "digest": f"{call_id}:{'0' * 64}:{basis}",
        "basis": f"{call_id}:{digest}:{'0' * 16}",
        "unknown": f"{UUID(int=7)}:{digest}:{basis}",
        "nonsense": "nonsense",
    }[forge]

    approve(as_alice, [value])

    assert not Vote.objects.exists()
    assert states(three) == [State.HELD] * 3


@pytest.mark.long
def test_only_so_many_at_once(as_alice: Client, scout: Agent, send_mail: Tool) -> None:
    calls = hold(scout, send_mail, MOST + 1)

    page = look(as_alice, calls)

    assert len(posted(page)) == MOST
    assert f"{fingerprint(calls[-1])} At most 20 calls are approved at once." in plain(page)
    approve(as_alice, posted(page))
    assert states(calls) == [State.QUEUED] * MOST + [State.HELD]


@pytest.mark.long
def test_looking_decides_nothing_and_asks_the_database_the_same_for_any_number(
    as_alice: Client, scout: Agent, send_mail: Tool, django_assert_max_num_queries: Any
) -> None:
    calls = hold(scout, send_mail, MOST)
    look(as_alice, calls[:2])

    with django_assert_max_num_queries(22):
        look(as_alice, calls)

    assert not Vote.objects.exists()
    assert as_alice.get(HERE).status_code == 302
    for name in ("alike_step_up", "alike_at_provider"):
        assert as_alice.get(reverse(f"approvals:{name}")).status_code == 405


def test_who_may_not_decide_sees_none_of_it(
    client: Client, vera: User, mallory: User, three: list[UUID]
) -> None:
    assert client.get(HERE, {"call": [str(one) for one in three]}).status_code == 302
    for person in (vera, mallory):
        client.force_login(person)
        assert client.get(HERE, {"call": [str(one) for one in three]}).status_code == 403
        assert client.post(HERE, {"call": [str(one) for one in three]}).status_code == 403
        assert client.post(reverse("approvals:alike_step_up")).status_code == 403
    client.force_login(vera)
    assert "data-pick" not in client.get("/queue/").text
    assert states(three) == [State.HELD] * 3


def test_a_form_of_another_site_approves_nothing(alice: User, three: list[UUID]) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)

    assert client.post(HERE, {"call": posted(look(client, three))}).status_code == 403
    assert states(three) == [State.HELD] * 3


def test_a_line_of_the_queue_has_a_box(as_alice: Client, three: list[UUID]) -> None:
    page = as_alice.get("/queue/").text

    assert re.findall(r'name="call" value="([^"]+)" form="alike"', page) == [
        str(one) for one in three
    ]
    assert f'id="alike" method="get" action="{HERE}"' in page


def signed(client: Client, calls: list[str], device: Device) -> dict[str, str]:
    offered = client.post(reverse("approvals:alike_step_up"), {"call": calls}).json()
    return {"ticket": offered["ticket"], "answer": device.get(offered["publicKey"])}


@pytest.mark.long
def test_one_passkey_signs_a_statement_that_names_each_call(
    as_alice: Client, alice: User, scout: Agent, send_mail: Tool
) -> None:
    device = passkey(alice)
    calls = hold(scout, send_mail, 3, thresholds=ONE_PASSKEY)
    page = look(as_alice, calls)
    assert f'data-step-up="{reverse("approvals:alike_step_up")}"' in page

    approve(as_alice, posted(page), **signed(as_alice, posted(page), device))

    assert states(calls) == [State.QUEUED] * 3
    proof = Proof.objects.get()
    lines = "".join(
        f"call: {one}\ndigest: {Call.objects.get(pk=one).call_digest}\n" for one in calls
    )
    assert proof.statement.startswith(
        f"countersign votes 1\nvote: yes\nperson: {alice.pk}\n{lines}name: alice\n"
    )
    assert [vote.step_up for vote in proof.votes.all()] == ["passkey"] * 3
    for entry in Entry.objects.filter(action="approval.voted"):
        assert entry.details["proof"] == proof.statement_digest
    out = StringIO()
    call_command("verify_proofs", stdout=out)
    assert "1 proofs checked: 1 by passkey" in out.getvalue()


@pytest.mark.long
def test_a_session_alone_does_not_approve_them(
    as_alice: Client, alice: User, scout: Agent, send_mail: Tool
) -> None:
    device = passkey(alice)
    calls = hold(scout, send_mail, 2, thresholds=ONE_PASSKEY)
    others = hold(scout, send_mail, 4, thresholds=ONE_PASSKEY)[2:]
    shown = posted(look(as_alice, calls))

    said = approve(as_alice, shown, reason="Both.")
    assert "The rule asks you to confirm by a passkey." in said
    assert "Both." in said
    # What was signed for others.
    assert "not this decision" in approve(
        as_alice, shown, **signed(as_alice, posted(look(as_alice, others)), device)
    )
    # Fewer than were signed, and signed twice.
    given = signed(as_alice, shown, device)
    assert "not this decision" in approve(as_alice, shown[:1], **given)
    assert not Vote.objects.exists()
    approve(as_alice, shown, **given)
    assert states(calls) == [State.QUEUED] * 2


@pytest.mark.long
def test_what_cannot_be_confirmed_is_left_out_by_name(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    free = hold(scout, send_mail, 2)
    strict = hold(scout, send_mail, 4, thresholds=ONE_PASSKEY)[2:]

    page = look(as_alice, [*free, *strict])

    why = "The rule asks you to confirm by passkey, which you do not have."
    for one in strict:
        assert f"{fingerprint(one)} {why}" in plain(page)
    approve(as_alice, posted(page))
    assert states([*free, *strict]) == [State.QUEUED] * 2 + [State.HELD] * 2
    forged = [f"{strict[0]}:{Call.objects.get(pk=strict[0]).call_digest}:{'0' * 16}"]
    refused = as_alice.post(reverse("approvals:alike_step_up"), {"call": forged})
    assert refused.status_code == 403


@pytest.mark.long
def test_one_code_confirms_all_of_them(
    as_alice: Client, alice: User, scout: Agent, send_mail: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.one_time_codes.spend", lambda person, code: code == "123456")
    CodeApp.objects.create(person=alice, sealed_secret=b"", confirmed_at=timezone.now())
    calls = hold(scout, send_mail, 2, thresholds=ONE_CODE)
    shown = posted(look(as_alice, calls))

    assert "The code is wrong" in approve(as_alice, shown, code="654321")
    assert not Vote.objects.exists()
    approve(as_alice, shown, code="123456")

    assert states(calls) == [State.QUEUED] * 2
    assert {vote.step_up for vote in Vote.objects.all()} == {"totp"}


@pytest.mark.long
def test_a_call_that_changed_after_it_was_signed_is_left_out_of_the_signed(
    as_alice: Client, alice: User, scout: Agent, send_mail: Tool
) -> None:
    device = passkey(alice)
    calls = hold(scout, send_mail, 2, thresholds=ONE_PASSKEY)
    shown = posted(look(as_alice, calls))
    given = signed(as_alice, shown, device)
    services.cancel(calls[0], by=scout.actor)

    said = approve(as_alice, shown, **given)

    assert "You approved 1 call." in said
    assert states(calls) == [State.WITHDRAWN, State.QUEUED]


@pytest.mark.long
@pytest.mark.parametrize("change", ["another call", "another digest", "name", "twice"])
def test_the_database_takes_no_vote_that_the_proof_does_not_name(
    as_alice: Client, alice: User, scout: Agent, send_mail: Tool, change: str
) -> None:
    named = scenery.person("carol", Role.APPROVER)
    device = passkey(alice)
    two = (Threshold(approve=2, step_up=StepUp.PASSKEY),)
    calls = hold(scout, send_mail, 3, thresholds=two)
    shown = posted(look(as_alice, calls[:2]))
    approve(as_alice, shown, **signed(as_alice, shown, device))
    proof = Proof.objects.get()
    call = Call.objects.get(pk=calls[2] if change == "another call" else calls[0])
    services.take_back(Approval.objects.get(pk=calls[0]), by=alice)
    vote = Vote(
        approval_id=call.pk, person=alice, approve=True, seen_digest=call.call_digest,
        step_up="passkey", proof=proof,
    )  # fmt: skip
    match change:
        case "another digest":
            vote.approval_id = calls[1]
        case "name":
            vote.person = named

    with pytest.raises(DatabaseError), transaction.atomic():
        vote.save()
