"""Agents and tokens: who sees which, what is shown once, what each press leaves in the record."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import services
from accounts.models import Agent, AgentToken, User
from accounts.roles import Role
from accounts.tokens import load, look_up
from audit.models import Entry
from registry.models import Toolset
from tests.console import scenery


@pytest.fixture
def ada(db: None) -> User:
    """An administrator."""
    return scenery.person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def as_ada(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


@pytest.fixture
def office(olga: User) -> Toolset:
    return Toolset.objects.create(slug="office")


def issue(client: Client, agent: Agent, days: str = "30"):
    return client.post(reverse("accounts:issue_token", args=[agent.name]), {"days": days})


def shown_token(page: str) -> str:
    found = re.search(r'<code id="token"[^>]*>([^<]+)<', page)
    assert found
    return found.group(1)


@pytest.mark.parametrize(
    ("name", "sees"),
    [
        ("ada", {"scout", "clerk"}),
        ("olga", {"scout", "clerk"}),
        ("ines", {"scout", "clerk"}),
        ("bob", {"scout"}),
        ("mallory", set()),
    ],
)
def test_everybody_sees_the_agents_that_are_theirs_to_see(
    client: Client, request: pytest.FixtureRequest, scout: Agent, name: str, sees: set[str]
) -> None:
    clerk = Agent.objects.create(name="clerk", owner=scenery.person("carol"))
    client.force_login(request.getfixturevalue(name))

    page = client.get(reverse("accounts:agents"))

    assert {agent.name for agent in page.context["page"].rows} == sees
    answer = client.get(reverse("accounts:agent", args=[clerk.name])).status_code
    assert answer == (200 if "clerk" in sees else 404)


def test_when_a_token_was_used_is_not_called_the_agents_last_use(
    as_ada: Client, scout: Agent
) -> None:
    """Calls at the host's command line have none."""
    page = as_ada.get(reverse("accounts:agents")).text

    assert "Token last used" in page
    assert "Last use<" not in page


def test_a_stranger_is_asked_to_sign_in(client: Client, scout: Agent) -> None:
    for name, args in [("agents", []), ("agent", ["scout"]), ("settings", [])]:
        response = client.get(reverse(f"accounts:{name}", args=args))
        assert response.status_code == 302
        assert response["Location"].startswith(reverse("accounts:sign_in"))


@pytest.mark.long
def test_an_agent_is_made_and_recorded(as_ada: Client, bob: User) -> None:
    given = {"name": "helper", "owner": bob.pk}

    response = as_ada.post(reverse("accounts:add_agent"), given, follow=True)

    assert "Give it a token" in response.text
    assert Agent.objects.get(name="helper").owner == bob
    entry = Entry.objects.get(action="agent.created")
    assert (entry.actor, entry.agent) == ("ada", "helper")


@pytest.mark.parametrize(
    ("name", "said"), [("scout", "already exists"), ("two words", "valid"), ("", "required")]
)
def test_a_name_that_cannot_be_is_said_at_its_field(
    as_ada: Client, scout: Agent, name: str, said: str
) -> None:
    given = {"name": name, "owner": scout.owner_id}

    page = as_ada.post(reverse("accounts:add_agent"), given)

    assert said in page.context["form"].errors["name"][0]
    assert 'aria-invalid="true"' in page.text
    assert Agent.objects.count() == 1


@pytest.mark.parametrize("name", ["bob", "ines", "vera", "mallory"])
def test_others_make_no_agents_and_switch_none(
    client: Client, request: pytest.FixtureRequest, scout: Agent, name: str
) -> None:
    client.force_login(request.getfixturevalue(name))
    given = {"name": "helper", "owner": scout.owner_id}

    assert client.post(reverse("accounts:add_agent"), given).status_code == 403
    off = reverse("accounts:set_agent_enabled", args=["scout"])
    assert client.post(off, {"enabled": "0"}).status_code == 403
    scout.refresh_from_db()
    assert scout.enabled


@pytest.mark.long
@pytest.mark.parametrize("name", ["ada", "olga", "bob"])
def test_a_token_is_shown_once_and_opens_the_door(
    client: Client, request: pytest.FixtureRequest, scout: Agent, name: str
) -> None:
    client.force_login(request.getfixturevalue(name))

    page = issue(client, scout, "7")

    token = shown_token(page.text)
    bearer = look_up(token)
    assert bearer
    assert bearer.agent_name == "scout"
    assert page["Cache-Control"].startswith("max-age=0")
    assert token not in client.get(reverse("accounts:agent", args=["scout"])).text
    row = AgentToken.objects.get()
    assert timedelta(days=6.9) < row.expires_at - timezone.now() < timedelta(days=7.1)
    entry = Entry.objects.get(action="token.issued")
    assert (entry.actor, entry.agent) == (name, "scout")
    assert token not in str(entry.details)


@pytest.mark.parametrize("days", ["0", "91", "-3", "soon", ""])
def test_days_out_of_bounds_are_said_at_the_field(
    client: Client, bob: User, scout: Agent, days: str
) -> None:
    client.force_login(bob)

    page = issue(client, scout, days)

    assert page.context["form"].errors["days"]
    assert not AgentToken.objects.exists()


@pytest.mark.parametrize(("name", "status"), [("ines", 403), ("vera", 404), ("mallory", 404)])
def test_others_issue_and_revoke_nothing(
    client: Client, request: pytest.FixtureRequest, scout: Agent, name: str, status: int
) -> None:
    services.issue_token(scout, by=None)
    token = AgentToken.objects.get()
    client.force_login(request.getfixturevalue(name))

    assert issue(client, scout).status_code == status
    revoke = reverse("accounts:revoke_token", args=["scout", token.public_id])
    assert client.post(revoke).status_code == status
    rotate = reverse("accounts:rotate_token", args=["scout", token.public_id])
    assert client.post(rotate).status_code == status
    token.refresh_from_db()
    assert token.revoked_at is None
    assert AgentToken.objects.count() == 1


def test_a_token_is_revoked_once(client: Client, bob: User, scout: Agent) -> None:
    text = services.issue_token(scout, by=bob)
    revoke = reverse("accounts:revoke_token", args=["scout", AgentToken.objects.get().public_id])
    client.force_login(bob)

    first, second = client.post(revoke, follow=True), client.post(revoke, follow=True)

    assert "opens nothing any more" in first.text
    assert "revoked before" in second.text
    assert look_up(text) is None
    assert Entry.objects.filter(action="token.revoked").count() == 1


def test_a_token_is_replaced_by_one_that_lasts_as_long(
    client: Client, bob: User, scout: Agent
) -> None:
    old = services.issue_token(scout, by=bob, days=90)
    token = AgentToken.objects.get()
    client.force_login(bob)

    page = client.post(reverse("accounts:rotate_token", args=["scout", token.public_id]))

    new = AgentToken.objects.exclude(pk=token.pk).get()
    assert "works for one more hour" in page.text
    assert "shown this once" in page.text
    assert 89 <= (new.expires_at - timezone.now()).days <= 90
    token.refresh_from_db()
    assert token.expires_at - timezone.now() <= services.OVERLAP
    # Both open doors until then.
    assert look_up(old) is not None
    assert Entry.objects.filter(action="token.rotated").count() == 1


def test_a_limited_token_says_so_and_its_replacement_is_limited_too(
    client: Client, bob: User, scout: Agent
) -> None:
    client.force_login(bob)
    issue = reverse("accounts:issue_token", args=["scout"])
    given = {"days": 30, "toolsets": "desk, office", "reads_only": "1"}

    client.post(issue, given)

    token = AgentToken.objects.get()
    assert (token.toolsets, token.reads_only) == (["desk", "office"], True)
    details = Entry.objects.get(action="token.issued").details
    assert (details["toolsets"], details["reads_only"]) == (["desk", "office"], True)
    services.note_used({token.pk: "2001:db8:1:2:3::4"})
    page = client.get(reverse("accounts:agent", args=["scout"])).text
    assert "Opens only desk, office" in page
    assert "from 2001:db8:1:2::/64" in page
    client.post(reverse("accounts:rotate_token", args=["scout", token.public_id]))
    new = AgentToken.objects.exclude(pk=token.pk).get()
    assert (new.toolsets, new.reads_only) == (["desk", "office"], True)


def test_a_toolset_of_a_token_has_a_name(client: Client, bob: User, scout: Agent) -> None:
    client.force_login(bob)

    page = client.post(
        reverse("accounts:issue_token", args=["scout"]), {"days": 30, "toolsets": "desk/rec"}
    )

    assert page.context["form"].errors["toolsets"]
    assert not AgentToken.objects.exists()


def test_the_command_issues_limited_tokens(scout: Agent) -> None:
    call_command("issue_token", "scout", "--toolset", "desk", "--toolset", "b", "--read-only")

    token = AgentToken.objects.get()
    assert (token.toolsets, token.reads_only) == (["b", "desk"], True)


def test_a_revoked_token_is_not_replaced(client: Client, bob: User, scout: Agent) -> None:
    services.issue_token(scout, by=bob)
    token = AgentToken.objects.get()
    services.revoke_token(token, by=bob)
    client.force_login(bob)

    rotate = reverse("accounts:rotate_token", args=["scout", token.public_id])
    assert client.post(rotate).status_code == 404
    assert AgentToken.objects.count() == 1


def test_another_agents_token_is_not_found_under_this_one(
    client: Client, bob: User, scout: Agent
) -> None:
    clerk = Agent.objects.create(name="clerk", owner=scenery.person("carol"))
    services.issue_token(clerk, by=None)
    client.force_login(bob)

    address = reverse("accounts:revoke_token", args=["scout", AgentToken.objects.get().public_id])
    assert client.post(address).status_code == 404


def test_switching_off_and_on_is_recorded(as_ada: Client, scout: Agent) -> None:
    address = reverse("accounts:set_agent_enabled", args=["scout"])

    off = as_ada.post(address, {"enabled": "0"}, follow=True)
    on = as_ada.post(address, {"enabled": "1"}, follow=True)

    assert "none of its tokens opens anything" in off.text
    assert "none of its tokens opens anything" not in on.text
    actions = Entry.objects.filter(agent="scout").values_list("action", flat=True)
    assert list(actions) == ["agent.enabled", "agent.disabled"]


@pytest.mark.parametrize("name", ["issue_token", "set_agent_enabled", "agent_toolsets"])
def test_changes_need_the_forms_own_token(ada: User, scout: Agent, name: str) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ada)
    app = "registry" if name == "agent_toolsets" else "accounts"

    assert strict.post(reverse(f"{app}:{name}", args=["scout"])).status_code == 403


@pytest.mark.parametrize("name", ["issue_token", "set_agent_enabled"])
def test_a_verb_is_no_page(as_ada: Client, scout: Agent, name: str) -> None:
    assert as_ada.get(reverse(f"accounts:{name}", args=["scout"])).status_code == 405


def test_toolsets_are_chosen_on_the_agents_page(
    client: Client, olga: User, scout: Agent, office: Toolset
) -> None:
    client.force_login(olga)
    address = reverse("registry:agent_toolsets", args=["scout"])

    client.post(address, {"toolset": [office.pk]})
    assert list(office.agents.all()) == [scout]
    client.post(address, {})

    assert not office.agents.exists()
    actions = Entry.objects.filter(action__startswith="toolset.").values_list("action", flat=True)
    assert list(actions) == ["toolset.removed", "toolset.added"]


def test_an_owner_sees_the_toolsets_and_may_not_choose(
    client: Client, bob: User, scout: Agent, office: Toolset
) -> None:
    office.agents.add(scout)
    client.force_login(bob)
    address = reverse("registry:agent_toolsets", args=["scout"])

    assert "office" in client.get(address).text
    assert '<form class="stack tight"' not in client.get(address).text
    assert client.post(address, {}).status_code == 403
    assert office.agents.exists()


def test_a_piece_of_the_page_comes_alone(
    client: Client, bob: User, scout: Agent, office: Toolset
) -> None:
    office.agents.add(scout)
    client.force_login(bob)

    for name in ("agent_toolsets", "agent_connect"):
        address = reverse(f"registry:{name}", args=["scout"])
        assert "<html" in client.get(address).text
        piece = client.get(address, headers={"HX-Request": "true"}).text
        assert "office" in piece
        assert "<html" not in piece


def test_connecting_an_agent_without_a_toolset_says_what_is_missing(
    client: Client, bob: User, scout: Agent
) -> None:
    client.force_login(bob)

    assert (
        "may use no toolset yet"
        in client.get(reverse("registry:agent_connect", args=["scout"])).text
    )


def test_somebody_elses_agent_shows_no_pieces(client: Client, vera: User, scout: Agent) -> None:
    client.force_login(vera)

    for name in ("agent_toolsets", "agent_connect"):
        assert client.get(reverse(f"registry:{name}", args=["scout"])).status_code == 404


def test_the_settings_page_offers_what_one_may(client: Client, mallory: User, ada: User) -> None:
    client.force_login(mallory)
    assert reverse("registry:toolsets") not in client.get(reverse("accounts:settings")).text

    client.force_login(ada)
    assert reverse("registry:toolsets") in client.get(reverse("accounts:settings")).text


def set_hold(client: Client, agent: Agent, seconds: str) -> str:
    there = reverse("accounts:set_agent_hold", args=[agent.name])
    return client.post(there, {"seconds": seconds}, follow=True).content.decode()


def test_an_operator_sets_how_long_its_requests_are_held(
    client: Client, olga: User, scout: Agent
) -> None:
    client.force_login(olga)

    set_hold(client, scout, "4")
    assert Agent.objects.get().hold_s == 4
    assert 'value="4"' in set_hold(client, scout, "4")
    for wrong in ("0", "56", "-1", "soon"):
        assert "The first answer comes within 1 to 55 seconds." in set_hold(client, scout, wrong)
    set_hold(client, scout, "")

    assert Agent.objects.get().hold_s is None
    entries = Entry.objects.filter(action="agent.hold_set").order_by("id")
    assert [one.details["seconds"] for one in entries] == [4, None]
    assert {(one.actor, one.agent) for one in entries} == {("olga", "scout")}


def test_its_owner_does_not(client: Client, scout: Agent) -> None:
    client.force_login(scout.owner)

    there = reverse("accounts:set_agent_hold", args=[scout.name])
    assert client.post(there, {"seconds": "4"}).status_code == 403
    page = client.get(reverse("accounts:agent", args=[scout.name])).content.decode()
    assert "Wait before answering" not in page


def test_the_command_sets_it_too(scout: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("update_agent", "scout", "--hold", "4")
    assert "are answered after: 4 s" in capsys.readouterr().out
    assert Agent.objects.get().hold_s == 4
    call_command("update_agent", "scout", "--hold", "0")
    assert "as its toolset says" in capsys.readouterr().out
    assert Agent.objects.get().hold_s is None

    with pytest.raises(CommandError, match="within 1 to 55 seconds"):
        call_command("update_agent", "scout", "--hold", "56")
    with pytest.raises(CommandError, match="There is no agent named nobody"):
        call_command("update_agent", "nobody", "--hold", "4")


def test_what_goes_on_is_not_ended_by_it(scout: Agent) -> None:
    before = look_up(services.issue_token(scout, by=None))
    assert before

    services.set_hold(scout, 4, by=None)

    assert load().holds(before)


@pytest.fixture
def company(settings: Any, tmp_path: Path) -> str:
    """A provider whose access tokens are taken of agents."""
    issuer = "https://login.example.com"
    known = {"issuer": issuer, "client_id": "countersign", "agent_tokens": True}
    settings.OIDC_FILE = tmp_path / "oidc.json"
    settings.OIDC_FILE.write_text(json.dumps({"providers": {"company": known}}))
    return issuer


def name_client(client: Client, agent: Agent, issuer: str, client_id: str) -> Any:
    url = reverse("accounts:name_client", args=[agent.name])
    return client.post(url, {"provider": issuer, "client_id": client_id}, follow=True)


def test_an_administrator_names_a_client_once_and_revokes_it(
    as_ada: Client, ada: User, company: str, scout: Agent
) -> None:
    page = name_client(as_ada, scout, company, "desk-app").content.decode()
    assert "until it is revoked" in page
    again = name_client(as_ada, scout, company, "desk-app").content.decode()

    assert "named for this agent already" in again
    token = AgentToken.objects.get(issuer=company)
    assert (token.agent, token.client_id, token.created_by) == (scout, "desk-app", ada)
    entry = Entry.objects.get(action="agent.client_named")
    assert (entry.details["issuer"], entry.details["client_id"]) == (company, "desk-app")
    # It has no secret that could be rotated.
    rotate = reverse("accounts:rotate_token", args=[scout.name, token.public_id])
    assert as_ada.post(rotate).status_code == 404
    as_ada.post(reverse("accounts:revoke_token", args=[scout.name, token.public_id]))
    assert not load().has_client(company, "desk-app")


@pytest.mark.parametrize("client_id", ["", "x" * 256, "a\0b"])
def test_a_client_needs_an_id(as_ada: Client, company: str, scout: Agent, client_id: str) -> None:
    name_client(as_ada, scout, company, client_id)

    assert not AgentToken.objects.filter(issuer=company).exists()


def test_another_issuer_than_those_of_the_file_is_no_choice(
    as_ada: Client, company: str, scout: Agent
) -> None:
    name_client(as_ada, scout, "https://evil.example", "desk-app")

    assert not AgentToken.objects.exclude(issuer="").exists()


def test_whoever_owns_the_agent_alone_names_no_client(
    client: Client, company: str, scout: Agent
) -> None:
    client.force_login(scout.owner)

    answer = name_client(client, scout, company, "desk-app")

    assert answer.status_code == 403
    page = client.get(reverse("accounts:agent", args=[scout.name])).content.decode()
    assert reverse("accounts:name_client", args=[scout.name]) not in page


def test_a_valid_token_is_shown_however_many_have_ended(client: Client, scout: Agent) -> None:
    client.force_login(scout.owner)
    first, *others = (services.issue_token(scout, by=scout.owner) for _ in range(52))
    for one in scout.tokens.exclude(public_id=first[4:12]):
        services.revoke_token(one, by=scout.owner)

    page = client.get(f"/agents/{scout.name}/").text

    assert f"csa_{first[4:12]}_" in page
    assert f"csa_{others[0][4:12]}_" not in page
