"""Before something dangerous: what follows in figures, and a press that alone decides."""

import re
from datetime import timedelta
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import service_accounts, services
from accounts.models import Agent, AgentToken, BrowserSession, ScimToken, User
from accounts.roles import Role
from approvals.models import Approval
from approvals.services import reconsider
from audit.models import Entry
from calls.models import Freeze
from calls.record.states import State
from notifications.models import Webhook
from notifications.services import add_webhook
from policies.models import Effect, Rule
from registry.models import Server, Tool
from tests.console import scenery


@pytest.fixture
def ada(db: None) -> User:
    """An administrator."""
    return scenery.person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def token(scout: Agent) -> AgentToken:
    services.issue_token(scout, by=None)
    return AgentToken.objects.get()


def figures(page: str) -> dict[str, str]:
    shown = page[page.index('class="facts tally"') :]
    return dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd>", shown[: shown.index("</dl>")]))


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def test_disabling_an_agent_says_what_it_ends_and_does_it_at_the_press(
    olga: User, scout: Agent, token: AgentToken, send_mail: Tool, held: UUID
) -> None:
    rule = Rule.objects.create(name="Mails of scout", effect=Effect.ASK)
    rule.agents.add(scout)
    client = signed_in(olga)
    there = reverse("approvals:disable_agent", args=["scout"])
    assert there in client.get(reverse("accounts:agent", args=["scout"])).text

    page = client.get(there).text

    shown = figures(page)
    assert shown["Valid tokens"] == "1"
    assert shown["Pending approvals"] == "1"
    assert shown["Running calls"] == "0"
    assert shown["Toolsets that it may use"] == "1"
    assert shown["Rules that name it"] == "1"
    assert "Pending calls become superseded" in page
    assert "Running calls go on" not in page
    scout.refresh_from_db()
    assert scout.enabled
    given = {"enabled": "0", "reason": " It asks too often. "}
    client.post(reverse("accounts:set_agent_enabled", args=["scout"]), given)
    assert Entry.objects.get(action="agent.disabled").reason == "It asks too often."
    assert client.get(there).status_code == 302


def test_what_is_pending_of_a_disabled_agent_is_superseded_as_was_said(
    olga: User, scout: Agent, held: UUID
) -> None:
    from_the_page = {"enabled": "0"}
    signed_in(olga).post(reverse("accounts:set_agent_enabled", args=["scout"]), from_the_page)

    decide(held)

    assert Approval.objects.get(pk=held).state == Approval.State.SUPERSEDED


def decide(held: UUID) -> None:
    """As the sweep does when something changed."""
    reconsider(Approval.objects.get(pk=held))


def test_revoking_a_token_says_whether_the_agent_has_another(
    bob: User, scout: Agent, token: AgentToken
) -> None:
    client = signed_in(bob)
    there = reverse("approvals:revoke_token", args=["scout", token.public_id])
    assert there in client.get(reverse("accounts:agent", args=["scout"])).text

    page = client.get(there).text

    assert figures(page)["Other valid tokens of the agent"] == "0"
    assert "it cannot connect without one" in page
    assert AgentToken.objects.get().revoked_at is None
    revoke = reverse("accounts:revoke_token", args=["scout", token.public_id])
    client.post(revoke, {"reason": "It was in a mail."})
    assert Entry.objects.get(action="token.revoked").reason == "It was in a mail."
    assert client.get(there).status_code == 404
    services.issue_token(scout, by=None)
    services.issue_token(scout, by=None)
    other = AgentToken.objects.filter(revoked_at=None).first()
    assert other
    page = client.get(reverse("approvals:revoke_token", args=["scout", other.public_id])).text
    assert figures(page)["Other valid tokens of the agent"] == "1"
    assert "it cannot connect without one" not in page


@pytest.mark.long
def test_disabling_a_server_says_who_loses_what(olga: User, held: UUID, mailer: Server) -> None:
    client = signed_in(olga)
    there = reverse("approvals:disable_server", args=["mailer"])
    assert there in client.get(reverse("registry:edit_server", args=["mailer"])).text

    page = client.get(there).text
    shown = figures(page)

    assert f'href="{reverse("registry:servers")}" aria-current="page"' in page
    assert shown["Published tools"] == shown["Toolsets"] == "1"
    assert shown["Agents that may call it"] == shown["Pending approvals"] == "1"
    given = {"enabled": "0", "reason": "It moves."}
    client.post(reverse("registry:set_server_enabled", args=["mailer"]), given)
    assert Entry.objects.get(action="server.disabled").reason == "It moves."
    assert client.get(there).status_code == 302


@pytest.mark.long
def test_disabling_a_person_says_what_of_theirs_ends(
    ada: User, bob: User, held: UUID, token: AgentToken
) -> None:
    thresholds = [{"from": "person:bob", "approve": 1, "deny": 1}]
    Rule.objects.create(name="Bob's", effect=Effect.ASK, thresholds=thresholds)
    client = signed_in(ada)
    there = reverse("approvals:disable_person", args=[bob.pk])
    assert there in client.get(reverse("accounts:person", args=[bob.pk])).text

    shown = figures(client.get(there).text)

    assert shown["Agents owned"] == shown["Valid tokens of these agents"] == "1"
    assert shown["Pending approvals"] == shown["Rules that ask for their approval"] == "1"
    given = {"active": "0", "reason": "Left."}
    client.post(reverse("approvals:set_person_active", args=[bob.pk]), given)
    assert Entry.objects.get(action="person.disabled").reason == "Left."
    assert client.get(there).status_code == 302


def test_an_emergency_stop_says_what_it_stops_and_who_can_end_it(
    olga: User, held: UUID, scout: Agent
) -> None:
    client = signed_in(olga)
    there = reverse("approvals:new_freeze")

    page = client.get(there, {"what": "agent:scout"}).text

    assert figures(page)["Pending approvals"] == "1"
    assert figures(page)["Other users who can end it"] == "0"
    assert "Agents" not in figures(page)
    scenery.person("ada", Role.ADMINISTRATOR)
    everything = figures(client.get(there, {"what": "everything"}).text)
    assert everything["Agents"] == everything["Servers"] == "1"
    assert everything["Other users who can end it"] == "1"
    assert not Freeze.objects.exists()
    client.post(reverse("approvals:freeze"), {"what": "agent:scout", "reason": "Odd mails."})
    assert Freeze.objects.get().agent == scout


def test_a_stop_without_a_reason_is_asked_for_it_again(olga: User, scout: Agent) -> None:
    page = signed_in(olga).post(
        reverse("approvals:freeze"), {"what": "agent:scout", "reason": " "}, follow=True
    )

    assert "Say why" in page.text
    assert "Suspend agent scout?" in page.text
    assert not Freeze.objects.exists()


@pytest.mark.long
def test_everything_is_chosen_by_nobody_but_the_person(olga: User) -> None:
    client = signed_in(olga)
    form = client.get(reverse("approvals:freezes")).text

    assert '<option value="" selected>Choose …</option>' in form
    assert form.count("selected") == 1
    for what in ("", "all", "everything-else"):
        page = client.get(reverse("approvals:new_freeze"), {"what": what}, follow=True)
        assert "Say what to suspend." in page.text
        page = client.post(reverse("approvals:freeze"), {"what": what, "reason": "x"}, follow=True)
        assert "Say what to suspend." in page.text
    assert client.get(reverse("approvals:new_freeze"), {"what": "agent:no"}).status_code == 404
    assert not Freeze.objects.exists()


def test_removing_a_rule_says_what_it_covers(ada: User, held: UUID) -> None:
    rule = Rule.objects.create(name="Mails", effect=Effect.ASK, server="mailer")
    client = signed_in(ada)
    there = reverse("approvals:rule_removal", args=[rule.pk])
    assert there in client.get(reverse("policies:remove_rule", args=[rule.pk])).text

    assert figures(client.get(there).text)["Published tools that it covers"] == "1"
    piece = client.get(there, headers={"HX-Request": "true"}).text
    assert "Published tools that it covers" in piece
    assert "<html" not in piece


@pytest.mark.long
@pytest.mark.parametrize("name", ["alice", "ines", "vera", "mallory"])
def test_who_may_not_do_it_does_not_see_what_it_would_do(
    request: pytest.FixtureRequest, name: str, token: AgentToken, mailer: Server, bob: User
) -> None:
    client = signed_in(request.getfixturevalue(name))
    rule = Rule.objects.create(name="Mails", effect=Effect.ASK)

    for view, args in (
        ("disable_agent", ["scout"]),
        ("disable_server", ["mailer"]),
        ("disable_person", [bob.pk]),
        ("rule_removal", [rule.pk]),
    ):
        there = reverse(f"approvals:{view}", args=args)
        assert client.get(there).status_code == 403, view
    there = reverse("approvals:revoke_token", args=["scout", token.public_id])
    assert client.get(there).status_code in (403, 404)


@pytest.mark.parametrize("name", ["ines", "vera", "mallory"])
def test_who_may_not_stop_does_not_see_its_page(request: pytest.FixtureRequest, name: str) -> None:
    client = signed_in(request.getfixturevalue(name))

    page = client.get(reverse("approvals:new_freeze"), {"what": "everything"})

    assert page.status_code == 403


def test_the_page_of_an_act_does_nothing_by_a_post(olga: User, scout: Agent) -> None:
    there = reverse("approvals:disable_agent", args=["scout"])

    assert signed_in(olga).post(there).status_code == 405


def test_running_calls_are_counted_and_said_to_go_on(
    olga: User, scout: Agent, send_mail: Tool
) -> None:
    scenery.call(scout, send_mail, scenery.MAIL, State.RUNNING)
    scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)

    page = signed_in(olga).get(reverse("approvals:disable_agent", args=["scout"])).text

    assert figures(page)["Running calls"] == figures(page)["Queued calls"] == "1"
    assert "Running calls go on" in page
    assert "Queued calls are not sent." in page


def test_ending_sessions_is_confirmed_first(ada: User) -> None:
    client, others = signed_in(ada), [signed_in(ada), signed_in(ada)]
    for one in (client, *others):
        one.get("/profile/")
    session = BrowserSession.objects.get(key=others[0].session.session_key)
    page = client.get("/profile/sessions/").text
    there = reverse("approvals:end_session", args=[session.pk])
    assert f'href="{there}"' in page
    assert reverse("accounts:end_session", args=[session.pk]) not in page

    assert figures(client.get(there).text)["Sessions"] == "1"
    every = client.get(reverse("approvals:end_other_sessions")).text
    assert figures(every)["Sessions"] == "2"
    assert BrowserSession.objects.count() == 3

    # One's own session is not ended there, and others' sessions by nobody else.
    own = BrowserSession.objects.get(key=client.session.session_key)
    assert client.get(reverse("approvals:end_session", args=[own.pk])).status_code == 404
    stranger = signed_in(scenery.person("zoe", Role.ADMINISTRATOR))
    assert stranger.get(there).status_code == 404
    client.post(reverse("accounts:end_session", args=[session.pk]))
    assert client.get(there).status_code == 404


def test_revoking_a_service_accounts_token_is_confirmed_first(ada: User, olga: User) -> None:
    scopes = ["registry.view_server"]
    account = service_accounts.create("robot", purpose="Reports", scopes=scopes, by=ada)
    named = ["robot", service_accounts.issue_token(account, by=ada)[4:12]]
    client, there = signed_in(ada), reverse("approvals:revoke_service_token", args=named)
    page = client.get(reverse("accounts:service_account", args=["robot"])).text
    assert f'href="{there}"' in page
    assert reverse("accounts:revoke_service_token", args=named) not in page

    page = client.get(there).text

    assert figures(page)["Other valid tokens of the service account"] == "0"
    assert "its program stops" in page
    assert 'name="reason"' in page
    assert account.tokens.get().revoked_at is None
    assert signed_in(olga).get(there).status_code == 403


def test_revoking_a_provisioning_token_is_confirmed_first(ada: User, olga: User) -> None:
    token = ScimToken.objects.create(
        issuer="https://id.example.org",
        public_id="abcdefgh",
        digest=b"d" * 32,
        is_confirmed=True,
        expires_at=timezone.now() + timedelta(days=9),
        created_by=ada,
    )
    client, there = signed_in(ada), reverse("approvals:revoke_scim_token", args=["abcdefgh"])
    assert f'href="{there}"' in client.get(reverse("accounts:provisioning")).text

    page = client.get(there).text

    assert figures(page)["Provisioned users"] == "0"
    assert "it cannot change users here" in page
    assert 'name="reason"' not in page
    token.refresh_from_db()
    assert token.revoked_at is None
    assert signed_in(olga).get(there).status_code == 403
    client.post(reverse("accounts:revoke_scim_token", args=["abcdefgh"]))
    assert client.get(there).status_code == 404


def test_disabling_a_webhook_is_confirmed_first(ada: User, alice: User) -> None:
    webhook = Webhook(name="books", format=Webhook.Format.STANDARD)
    add_webhook(webhook, by=ada, address="https://books.example.org/")
    client, there = signed_in(ada), reverse("notifications:disable_webhook", args=[webhook.pk])
    assert f'href="{there}"' in client.get(reverse("notifications:webhook", args=[webhook.pk])).text

    page = client.get(there).text

    assert figures(page)["Deliveries queued"] == "0"
    webhook.refresh_from_db()
    assert webhook.enabled
    assert signed_in(alice).get(there).status_code == 403
    client.post(reverse("notifications:set_enabled", args=[webhook.pk]), {"enabled": "0"})
    assert client.get(there).status_code == 302
