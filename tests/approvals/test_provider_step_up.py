"""Where a rule asks for a code or a passkey, somebody who came by a provider confirms there."""

import json
import time
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from accounts import stepup
from accounts.models import Agent, Identity, Proof, User
from accounts.roles import Role
from approvals import services, step_up_proofs
from approvals.eligibility import decided
from approvals.models import Approval, Vote
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from policies.thresholds import StepUp, Threshold
from registry.models import Tool
from tests.accounts.fake_provider import FakeProvider, SigningKey, callback
from tests.accounts.test_identity_providers import (
    Configure,
    by_domain,
    configure,
    fake,
    sign_in,
    way_there,
)
from tests.approvals.test_stepping import approve, hold, passkey, send, state
from tests.console import scenery

__all__ = ["configure", "fake", "send"]

STRONG = "urn:example:mfa"


@pytest.fixture
def company(fake: FakeProvider, configure: Configure, alice: User) -> FakeProvider:
    """alice's provider, which may confirm what she approves."""
    configure(company=by_domain(fake, step_up_acr_values=[STRONG]))
    Identity.objects.create(person=alice, issuer=fake.issuer, subject=fake.subject)
    fake.about = {"sid": "first"}
    return fake


@pytest.fixture
def as_alice(client: Client, company: FakeProvider) -> Client:
    """Signed in by her provider."""
    assert sign_in(client, company).status_code == 302
    company.about |= {"acr": STRONG}
    return client


@pytest.fixture
def call(scout: Agent, send: Tool) -> Call:
    return hold(scout, send, StepUp.TOTP)


def begin(client: Client, call: Call) -> str:
    answer = client.post(f"/queue/{call.pk}/step-up/provider/", {"seen": call.call_digest})
    return way_there(answer)


def come_back(client: Client, fake: FakeProvider, call: Call, **wrong: Any) -> Any:
    """What the card says after the provider's answer, whose token says `wrong`."""
    there = begin(client, call)
    fake.wrong = wrong
    answer = client.get(callback("company", fake.authorize(there)))
    fake.wrong = {}
    assert answer["Location"] == f"/queue/{call.pk}/"
    return client.get(answer["Location"])


@pytest.mark.long
def test_a_new_sign_in_at_the_provider_approves(
    as_alice: Client, company: FakeProvider, alice: User, call: Call
) -> None:
    assert "Confirm at Company" in as_alice.get(f"/queue/{call.pk}/").text

    page = come_back(as_alice, company, call, sid="second")

    assert "You confirmed this at Company. Press Approve" in page.text
    # Coming back decided nothing.
    assert state(call) == State.HELD
    assert "You approved mailer.send_mail" in approve(as_alice, call).text
    assert state(call) == State.QUEUED
    proof = Vote.objects.get().proof
    assert proof
    assert (proof.method, stepup.problem(proof)) == ("oidc", "")
    assert f"vote: yes\nperson: {alice.pk}\ncall: {call.pk}\ndigest: {call.call_digest}\n" in (
        proof.statement
    )
    assert as_alice.session["at_provider"]["sid"] == "second"


def test_the_request_asks_for_a_new_and_strong_sign_in(as_alice: Client, call: Call) -> None:
    there = begin(as_alice, call)

    for part in ("prompt=login", "max_age=0", f"acr_values={STRONG}", "scope=openid&"):
        assert part in there.replace("%3A", ":"), there


@pytest.mark.long
def test_the_entries_say_by_which_proof(
    as_alice: Client, company: FakeProvider, call: Call
) -> None:
    come_back(as_alice, company, call)
    approve(as_alice, call)

    voted = Entry.objects.get(action="approval.voted").details
    confirmed = Entry.objects.get(action="step_up.confirmed")
    assert voted["step_up"] == "oidc"
    assert voted["proof"] == confirmed.details["proof"]
    assert (confirmed.actor, confirmed.details["provider"]) == ("alice", "Company")
    assert (confirmed.details["subject"], confirmed.details["strength"]) == (
        company.subject,
        STRONG,
    )
    assert "identity provider" in as_alice.get(f"/queue/{call.pk}/").text


@pytest.mark.long
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"auth_time": int(time.time()) - 86400}, "too long ago"),
        ({"auth_time": None}, "sent no time of sign-in"),
        ({"acr": None}, "not as strong as is wanted"),
        ({"acr": "urn:example:password"}, "not as strong as is wanted"),
        ({"sub": "another"}, "A different account signed in"),
        ({"nonce": "another"}, "for another sign-in"),
        ({"aud": "another"}, "for another application"),
        ({"exp": 1_000_000_000}, "has expired"),
    ],
)
def test_an_answer_that_confirms_nothing(
    as_alice: Client, company: FakeProvider, call: Call, wrong: dict[str, Any], said: str
) -> None:
    page = come_back(as_alice, company, call, **wrong)

    assert said in page.text
    assert "You confirmed this" not in page.text
    entry = Entry.objects.get(action="step_up.failed")
    assert (entry.actor, entry.details["provider"]) == ("alice", "Company")
    assert said in entry.reason
    assert "confirm" in approve(as_alice, call).text
    assert state(call) == State.HELD


@pytest.mark.long
def test_who_did_not_come_in_time_confirms_nothing(
    as_alice: Client, company: FakeProvider, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    come_back(as_alice, company, call)
    now = time.time() + stepup.VALID_S + 1
    monkeypatch.setattr("accounts.oidc.step_up.time.time", lambda: now)

    assert "You confirmed this" not in as_alice.get(f"/queue/{call.pk}/").text
    approve(as_alice, call)

    assert state(call) == State.HELD


@pytest.mark.long
def test_a_confirmation_is_good_once(
    as_alice: Client, company: FakeProvider, alice: User, scout: Agent, send: Tool
) -> None:
    two = (Threshold(approve=2, step_up=StepUp.TOTP),)
    call_id = scenery.call(scout, send, scenery.MAIL, State.HELD, thresholds=two)
    call = Call.objects.get(pk=call_id)
    come_back(as_alice, company, call)
    kept = as_alice.session["confirmed_at_provider"]
    approve(as_alice, call)
    assert Vote.objects.count() == 1
    services.take_back(Approval.objects.get(pk=call.pk), by=alice)

    assert "confirm by a passkey, or" in approve(as_alice, call).text
    # As if two requests had read the session at once.
    session = as_alice.session
    session["confirmed_at_provider"] = kept
    session.save()
    assert "used before" in approve(as_alice, call).text
    assert Vote.objects.standing().count() == 0


def test_an_answer_of_the_provider_is_taken_once(
    as_alice: Client, company: FakeProvider, call: Call
) -> None:
    answer = company.authorize(begin(as_alice, call))
    assert as_alice.get(callback("company", answer)).status_code == 302

    assert as_alice.get(callback("company", answer)).status_code == 403


@pytest.mark.long
def test_another_calls_confirmation_approves_nothing(
    as_alice: Client, company: FakeProvider, call: Call, scout: Agent, send: Tool
) -> None:
    other = hold(scout, send, StepUp.TOTP, 2)
    come_back(as_alice, company, call)

    assert "You confirmed this" not in as_alice.get(f"/queue/{other.pk}/").text
    assert "not this decision" in approve(as_alice, other).text
    assert (state(call), state(other)) == (State.HELD, State.HELD)


@pytest.mark.long
def test_another_sessions_answer_confirms_nothing(
    as_alice: Client, company: FakeProvider, call: Call
) -> None:
    """Neither the answer nor what it confirmed goes from one session of hers to another."""
    other = Client()
    sign_in(other, company)
    answer = company.authorize(begin(as_alice, call))

    assert other.get(callback("company", answer)).status_code == 403
    come_back(as_alice, company, call)
    approve(other, call)
    assert state(call) == State.HELD


def test_somebody_elses_session_in_the_same_browser_confirms_nothing(
    as_alice: Client, company: FakeProvider, call: Call
) -> None:
    there = begin(as_alice, call)
    kept = as_alice.session["at_providers"]
    carol = scenery.person("carol", Role.APPROVER)
    Identity.objects.create(person=carol, issuer=company.issuer, subject="carol")
    company.subject = "carol"
    sign_in(as_alice, company)
    session = as_alice.session
    session["at_providers"] = kept
    session.save()

    as_alice.get(callback("company", company.authorize(there)))

    assert "A different account signed in" in Entry.objects.get(action="step_up.failed").reason
    approve(as_alice, call)
    assert state(call) == State.HELD


@pytest.mark.long
def test_a_rule_that_asks_for_a_passkey_takes_nothing_else(
    as_alice: Client, company: FakeProvider, scout: Agent, send: Tool
) -> None:
    call = hold(scout, send, StepUp.PASSKEY)
    assert "Confirm at" not in as_alice.get(f"/queue/{call.pk}/").text

    answer = as_alice.post(
        f"/queue/{call.pk}/step-up/provider/", {"seen": call.call_digest}, follow=True
    )

    assert "No code will do" in answer.text
    assert "No code will do" in approve(as_alice, call).text
    assert state(call) == State.HELD


@pytest.mark.long
def test_a_stricter_rule_does_not_count_a_vote_that_was_confirmed_at_the_provider(
    as_alice: Client, company: FakeProvider, call: Call
) -> None:
    come_back(as_alice, company, call)
    approve(as_alice, call)
    strict = [Threshold(step_up=StepUp.PASSKEY).plain()]

    assert decided(call.pk, [Threshold(step_up=StepUp.TOTP).plain()]) == "approved"
    assert decided(call.pk, strict) == ""


@pytest.mark.long
def test_without_the_setting_nothing_is_confirmed_there(
    as_alice: Client, company: FakeProvider, configure: Configure, call: Call
) -> None:
    there = begin(as_alice, call)
    configure(company=by_domain(company))

    assert "Confirm at" not in as_alice.get(f"/queue/{call.pk}/").text
    as_alice.get(callback("company", company.authorize(there)))
    again = as_alice.post(
        f"/queue/{call.pk}/step-up/provider/", {"seen": call.call_digest}, follow=True
    )

    assert "did not sign in at a provider" in again.text
    assert not as_alice.session.get("confirmed_at_provider")


@pytest.mark.long
def test_a_session_by_password_confirms_nothing_there(
    client: Client, company: FakeProvider, alice: User, call: Call
) -> None:
    client.force_login(alice)

    assert "Confirm at" not in client.get(f"/queue/{call.pk}/").text
    again = client.post(
        f"/queue/{call.pk}/step-up/provider/", {"seen": call.call_digest}, follow=True
    )
    assert "did not sign in at a provider" in again.text


@pytest.mark.long
def test_a_disconnected_account_confirms_nothing(
    as_alice: Client, company: FakeProvider, call: Call
) -> None:
    come_back(as_alice, company, call)
    Identity.objects.update(disconnected_at=call.asked_at)

    approve(as_alice, call)

    assert state(call) == State.HELD


@pytest.mark.long
def test_who_may_not_decide_is_sent_nowhere(
    client: Client, company: FakeProvider, call: Call, mallory: User
) -> None:
    at = f"/queue/{call.pk}/step-up/provider/"
    assert client.post(at).status_code == 302
    client.force_login(mallory)
    assert client.post(at).status_code == 403
    client.force_login(scenery.person("dora", Role.APPROVER))
    assert client.get(at).status_code == 405
    assert "Look again" in client.post(at, {"seen": "0" * 64}, follow=True).text


@pytest.mark.long
def test_entra_is_asked_by_claims_and_answers_with_a_list(
    as_alice: Client, company: FakeProvider, configure: Configure, call: Call
) -> None:
    configure(company=by_domain(company, step_up_acr_values=["c1"], acr_claim="acrs"))
    assert "%22acrs%22" in begin(as_alice, call)

    assert "not as strong" in come_back(as_alice, company, call, acr="c1").text
    come_back(as_alice, company, call, acrs=["c1", "c2"])
    approve(as_alice, call)

    assert state(call) == State.QUEUED


@pytest.mark.long
def test_the_card_offers_it_beside_a_passkey(
    as_alice: Client, company: FakeProvider, alice: User, call: Call
) -> None:
    passkey(alice)
    page = as_alice.get(f"/queue/{call.pk}/").text
    assert "data-step-up=" in page
    assert "Confirm at Company" in page

    page = come_back(as_alice, company, call).text

    assert "data-step-up=" not in page


@pytest.mark.long
def test_proofs_are_checked_again_from_their_rows(
    as_alice: Client, company: FakeProvider, call: Call
) -> None:
    come_back(as_alice, company, call)
    approve(as_alice, call)
    out = StringIO()
    # Whatever the provider publishes now.
    company.key = SigningKey()

    call_command("verify_proofs", stdout=out)

    assert "1 at an identity provider. All hold." in out.getvalue()


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("signature", "signature is not valid"),
        ("statement", "signed another statement"),
        ("person", "not this person's"),
        ("key", "not the one with which the provider signed"),
    ],
)
def test_what_was_changed_behind_our_back_is_found(
    as_alice: Client, company: FakeProvider, call: Call, change: str, said: str
) -> None:
    come_back(as_alice, company, call)
    approve(as_alice, call)
    proof, vote = Proof.objects.get(), Vote.objects.get()
    kept = json.loads(proof.assertion)
    match change:
        case "signature":
            kept["key"] = SigningKey().public
        case "statement":
            proof.statement += "more"
            proof.statement_digest = stepup.challenge(proof.statement).hex()
        case "person":
            proof.person = scenery.person("carol", Role.APPROVER)
        case "key":
            company.key = SigningKey()
            claims = {
                "iss": company.issuer,
                "sub": company.subject,
                "nonce": proof.statement_digest,
            }
            kept = {"id_token": company.signed(claims), "key": company.key.public}
    proof.assertion = json.dumps(kept)

    assert said in step_up_proofs.problem(proof, [vote])
