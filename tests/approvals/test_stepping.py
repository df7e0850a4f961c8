"""Where a rule asks for more than a session, a yes is confirmed by its person, for this call."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, transaction
from django.test import Client

from accounts import services as accounts
from accounts import stepup
from accounts.models import Agent, CodeApp, Passkey, Proof, User
from accounts.roles import Role
from accounts.stepup import Ticket
from approvals import services, step_up_proofs
from approvals.models import Approval, Vote
from approvals.step_up_proofs import ShownCall
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from policies.thresholds import StepUp, Threshold
from registry.models import Tool
from tests.accounts.authenticator import Device
from tests.console import scenery

HERE = "http://localhost:8000"


@pytest.fixture
def send(olga: User) -> Tool:
    return scenery.server("mailer", olga, scenery.SEND).tools.for_catalogue().get()


def hold(scout: Agent, send: Tool, asked: StepUp = StepUp.PASSKEY, n: int = 0) -> Call:
    arguments = {**scenery.MAIL, "subject": f"Minutes {n}"}
    threshold = Threshold(step_up=asked)
    call_id = scenery.call(scout, send, arguments, State.HELD, thresholds=(threshold,))
    return Call.objects.get(pk=call_id)


def passkey(person: User) -> Device:
    device = Device(HERE)
    # As the browser's registration leaves it (tests/accounts/test_proving.py).
    public = device.cose()
    Passkey.objects.create(
        person=person, name="Laptop", credential_id=device.id, public_key=public,
        rp_id="localhost", sign_count=0, synced=False,
    )  # fmt: skip
    return device


@pytest.fixture
def as_alice(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


@pytest.fixture
def device(alice: User) -> Device:
    return passkey(alice)


def asked(client: Client, call: Call) -> dict[str, Any]:
    answer = client.post(f"/queue/{call.pk}/step-up/", {"seen": call.call_digest})
    return dict(answer.json())


def signed(client: Client, call: Call, device: Device) -> dict[str, str]:
    offered = asked(client, call)
    return {"ticket": offered["ticket"], "answer": device.get(offered["publicKey"])}


def approve(client: Client, call: Call, **given: str):
    return client.post(
        f"/queue/{call.pk}/approve/", {"seen": call.call_digest, **given}, follow=True
    )


def state(call: Call) -> str:
    return Call.objects.get(pk=call.pk).state


@pytest.mark.long
def test_a_passkey_that_signs_this_very_decision_approves(
    as_alice: Client, alice: User, device: Device, scout: Agent, send: Tool
) -> None:
    call = hold(scout, send)

    page = approve(as_alice, call, **signed(as_alice, call, device))

    assert "You approved mailer.send_mail" in page.text
    assert state(call) == State.QUEUED
    proof = Vote.objects.get().proof
    assert proof
    assert f"vote: yes\nperson: {alice.pk}\ncall: {call.pk}\ndigest: {call.call_digest}\n" in (
        proof.statement
    )
    assert (proof.method, stepup.problem(proof)) == ("passkey", "")
    entry = Entry.objects.get(action="approval.voted")
    assert entry.details["step_up"] == "passkey"
    assert entry.details["proof"] == proof.statement_digest


@pytest.mark.long
def test_a_session_alone_approves_nothing_and_still_refuses(
    as_alice: Client, device: Device, scout: Agent, send: Tool
) -> None:
    call = hold(scout, send)

    assert "confirm by a passkey" in approve(as_alice, call).text
    assert state(call) == State.HELD
    assert not Vote.objects.exists()
    as_alice.post(f"/queue/{call.pk}/refuse/", {"seen": call.call_digest})
    assert state(call) == State.DENIED


@pytest.mark.long
def test_another_calls_assertion_approves_nothing(
    as_alice: Client, device: Device, scout: Agent, send: Tool
) -> None:
    one, other = hold(scout, send, n=1), hold(scout, send, n=2)

    page = approve(as_alice, other, **signed(as_alice, one, device))

    assert "not this decision" in page.text
    mixed = signed(as_alice, one, device) | {"ticket": asked(as_alice, other)["ticket"]}
    assert "does not fit this decision" in approve(as_alice, other, **mixed).text
    assert (state(one), state(other)) == (State.HELD, State.HELD)


def test_another_persons_passkey_approves_nothing(
    as_alice: Client, alice: User, device: Device, scout: Agent, send: Tool
) -> None:
    call = hold(scout, send)
    theirs = passkey(scenery.person("carol", Role.APPROVER))

    assert "not one of yours" in approve(as_alice, call, **signed(as_alice, call, theirs)).text
    assert state(call) == State.HELD


@pytest.mark.long
def test_a_replayed_assertion_approves_nothing(
    as_alice: Client, alice: User, device: Device, scout: Agent, send: Tool
) -> None:
    two = (Threshold(approve=2, step_up=StepUp.PASSKEY),)
    call_id = scenery.call(scout, send, scenery.MAIL, State.HELD, thresholds=two)
    call = Call.objects.get(pk=call_id)
    given = signed(as_alice, call, device)
    approve(as_alice, call, **given)
    assert Vote.objects.count() == 1
    services.take_back(Approval.objects.get(pk=call.pk), by=alice)

    page = approve(as_alice, call, **given)

    assert "Press the button again" in page.text
    assert Vote.objects.standing().count() == 0


def test_what_was_edited_meanwhile_is_not_what_was_signed(
    as_alice: Client, device: Device, scout: Agent, send: Tool
) -> None:
    call = hold(scout, send)

    stale = as_alice.post(f"/queue/{call.pk}/step-up/", {"seen": "0" * 64})

    assert stale.status_code == 403
    assert "Look again" in stale.json()["error"]


@pytest.mark.long
def test_a_code_confirms_only_where_the_rule_takes_one(
    as_alice: Client, alice: User, scout: Agent, send: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.one_time_codes.spend", lambda person, code: code == "123456")
    weak, strong = hold(scout, send, StepUp.TOTP, 1), hold(scout, send, StepUp.PASSKEY, 2)

    assert "No code will do" in approve(as_alice, strong, code="123456").text
    assert "The code is wrong" in approve(as_alice, weak, code="654321").text
    approve(as_alice, weak, code="123456")

    assert (state(weak), state(strong)) == (State.QUEUED, State.HELD)
    assert Vote.objects.get().step_up == "totp"


@pytest.mark.long
def test_the_card_says_what_is_asked_and_what_one_has_for_it(
    as_alice: Client, alice: User, scout: Agent, send: Tool
) -> None:
    call = hold(scout, send, StepUp.TOTP)
    assert "You have neither yet." in as_alice.get(f"/queue/{call.pk}/").text

    passkey(alice)
    CodeApp.objects.create(person=alice, sealed_secret=b"", confirmed_at=call.asked_at)
    page = as_alice.get(f"/queue/{call.pk}/").text

    assert f'data-step-up="/queue/{call.pk}/step-up/"' in page
    assert 'name="code"' in page
    assert "A passkey needs JavaScript." in page


@pytest.mark.long
def test_no_rule_asks_no_step(as_alice: Client, scout: Agent, send: Tool) -> None:
    call = hold(scout, send, StepUp.NONE)

    assert "data-step-up" not in as_alice.get(f"/queue/{call.pk}/").text
    approve(as_alice, call)
    assert state(call) == State.QUEUED


def test_who_may_not_decide_is_offered_nothing(
    client: Client, scout: Agent, send: Tool, bob: User, mallory: User
) -> None:
    call = hold(scout, send)
    at = f"/queue/{call.pk}/step-up/"
    assert client.post(at).status_code == 302
    client.force_login(mallory)
    assert client.post(at).status_code == 403
    client.force_login(scenery.person("dora", Role.APPROVER))
    assert client.get(at).status_code == 405
    Agent.objects.update(owner=User.objects.get(username="dora"))
    assert "yours" in client.post(at, {"seen": call.call_digest}).json()["error"]


@pytest.mark.long
def test_who_came_by_anothers_link_decides_nothing(
    client: Client, scout: Agent, send: Tool
) -> None:
    ada = scenery.person("ada", Role.ADMINISTRATOR)
    carol = accounts.create_person("carol", roles=[Role.APPROVER], by=ada)
    link = accounts.sign_in_link(carol, by=ada)
    client.post("/" + link.split("/", 3)[3])
    call = hold(scout, send, StepUp.NONE)

    assert "You signed in by a link from ada." in approve(client, call).text
    assert state(call) == State.HELD
    accounts.set_password(User.objects.get(pk=carol.pk), scenery.PASSWORD)
    client.login(username="carol", password=scenery.PASSWORD)
    approve(client, call)
    assert state(call) == State.QUEUED


def test_no_token_decides(client: Client, scout: Agent, scout_token: str, send: Tool) -> None:
    call = hold(scout, send, StepUp.NONE)

    answer = client.post(
        f"/queue/{call.pk}/approve/",
        {"seen": call.call_digest},
        headers={"Authorization": f"Bearer {scout_token}"},
    )

    assert answer.status_code == 302
    assert answer["Location"].startswith("/sign-in/")
    assert state(call) == State.HELD


@pytest.mark.parametrize("change", ["no proof", "other person", "other vote", "other method"])
def test_the_database_takes_no_confirmed_vote_without_its_proof(
    alice: User, device: Device, scout: Agent, send: Tool, change: str
) -> None:
    call = hold(scout, send)
    approval = Approval.objects.get(pk=call.pk)
    ticket = Ticket.new()
    said = step_up_proofs.statement([ShownCall.of(approval)], alice, ticket)
    offered = stepup.offer(alice, ticket, said)
    proof = stepup.prove(
        alice, said, ticket=offered["ticket"], answer=device.get(offered["publicKey"])
    )
    vote = Vote(
        approval=approval, person=alice, approve=True, seen_digest=call.call_digest,
        step_up="passkey", proof=proof,
    )  # fmt: skip
    match change:
        case "no proof":
            vote.proof = None
        case "other person":
            vote.person = scenery.person("carol", Role.APPROVER)
        case "other vote":
            vote.approve = False
        case "other method":
            vote.step_up = "totp"

    with pytest.raises(DatabaseError, match="without its proof"), transaction.atomic():
        vote.save()


def verified() -> str:
    out = StringIO()
    call_command("verify_proofs", stdout=out)
    return out.getvalue()


@pytest.mark.long
def test_all_proofs_are_checked_again_from_their_rows(
    as_alice: Client, device: Device, scout: Agent, send: Tool
) -> None:
    for n in range(2):
        call = hold(scout, send, n=n)
        approve(as_alice, call, **signed(as_alice, call, device))

    assert verified() == (
        "2 proofs checked: 2 by passkey, 0 by one-time code, 0 at an identity provider. All hold.\n"
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"statement": "countersign vote 1\nvote: no"}, "not what its digest"),
        ({"sign_count": 9}, "counted to another"),
        ({"assertion": "{}"}, "does not fit"),
        ({"vote": False}, "another vote"),
    ],
)
def test_what_was_changed_behind_our_back_is_found(
    as_alice: Client, device: Device, scout: Agent, send: Tool, change: dict[str, Any], said: str
) -> None:
    call = hold(scout, send)
    approve(as_alice, call, **signed(as_alice, call, device))
    proof, vote = Proof.objects.get(), Vote.objects.get()

    vote.approve = change.pop("vote", True)
    for name, value in change.items():
        setattr(proof, name, value)

    assert said in step_up_proofs.problem(proof, [vote])


def test_the_command_fails_on_a_bad_proof(
    as_alice: Client, device: Device, scout: Agent, send: Tool
) -> None:
    call = hold(scout, send)
    approve(as_alice, call, **signed(as_alice, call, device))
    other = Device(HERE)
    Passkey.objects.update(public_key=other.cose())

    with pytest.raises(CommandError, match="1 of 1 proofs do not hold"):
        verified()
