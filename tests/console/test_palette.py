"""Finding anything by a few letters, and nothing that one may not open."""

from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from approvals import services as approvals
from audit.services import SYSTEM
from calls.models import Call
from calls.record.states import State
from policies.models import Limit, Rule
from registry.models import Tool, Toolset
from registry.versions import search_index
from tests.console import scenery

pytestmark = pytest.mark.django_db


def found(client: Client, text: str) -> str:
    return client.get(reverse("find"), {"q": text}, headers={"HX-Request": "true"}).text


def test_it_finds_a_tool_a_server_and_an_agent(
    as_alice: Client, olga: User, client: Client, send_mail: Tool, held: UUID
) -> None:
    client.force_login(olga)

    assert reverse("registry:tool", args=[send_mail.exposed_name]) in found(client, "SEND")
    assert reverse("registry:server", args=["mailer"]) in found(client, "mail")
    assert reverse("accounts:agent", args=["scout"]) in found(client, "cou")


@pytest.mark.long
def test_a_call_is_found_by_its_id_its_beginning_and_its_fingerprint(
    as_alice: Client, held: UUID
) -> None:
    there = reverse("calls:detail", args=[held])
    fingerprint = Call.objects.get(pk=held).fingerprint

    for text in (str(held), str(held)[:8], str(held)[:8].upper(), fingerprint):
        assert there in found(as_alice, text)


@pytest.mark.long
def test_a_fingerprint_is_found_when_the_call_has_ended_and_only_decided_ones_have_one(
    as_alice: Client, held: UUID, scout: Agent, send_mail: Tool
) -> None:
    fingerprint = Call.objects.get(pk=held).fingerprint
    assert approvals.cancel(held, by=SYSTEM)
    other = {**scenery.MAIL, "body": "b"}
    allowed = scenery.call(scout, send_mail, other, State.QUEUED, statement="")
    call = Call.objects.get(pk=allowed)
    there = reverse("calls:detail", args=[allowed])

    assert reverse("calls:detail", args=[held]) in found(as_alice, fingerprint)
    assert call.fingerprint == ""
    assert there in found(as_alice, call.short_id)
    page = as_alice.get(there).text
    assert ">Fingerprint<" not in page
    assert call.short_id in page


@pytest.mark.long
def test_it_finds_users_toolsets_rules_and_limits_and_shows_each_to_who_may_see_it(
    client: Client, ines: User, vera: User, alice: User, send_mail: Tool
) -> None:
    User.objects.filter(pk=alice.pk).update(first_name="Alice", last_name="Mailhouse")
    box = Toolset.objects.create(slug="mailbox", title="信箱")
    rule = Rule.objects.create(name="Mail inside", effect="allow", mode="off")
    limit = Limit.objects.create(
        name="Mails a day", kind="calls", amount=5, period="day", effect="deny"
    )
    person = reverse("accounts:person", args=[alice.pk])

    client.force_login(ines)
    for text in ("mail", "MAILHOUSE"):
        assert person in found(client, text)
    places = found(client, "mail")
    assert reverse("registry:toolset", args=[box.slug]) in places
    assert f"{reverse('policies:rules')}#rule-{rule.pk}" in places
    assert reverse("policies:limit", args=[limit.pk]) in places
    assert f"{reverse('audit:list')}?text=mail" in places
    assert "?text=" not in found(client, "ma")
    assert reverse("registry:toolset", args=[box.slug]) in found(client, "信箱")

    client.force_login(vera)
    places = found(client, "mail")
    assert reverse("registry:toolset", args=[box.slug]) in places
    for address in (person, "/policies/", "/limits/", "/audit/"):
        assert address not in places


@pytest.mark.long
def test_actions_are_found_by_their_words_and_lead_to_where_they_are_confirmed(
    client: Client, olga: User, as_alice: Client, vera: User, scout: Agent, held: UUID
) -> None:
    stop, deny_all = "/emergency-stops/new/?what=agent:scout", "/queue/deny-all/?agent=scout"
    mine = found(as_alice, "deny scout")
    assert deny_all in mine
    assert stop in found(as_alice, "scout suspend")
    assert "Disable agent scout" not in found(as_alice, "disable agent scout")

    client.force_login(olga)
    assert "Disable agent scout" in found(client, "Disable agent SCOUT")
    assert "Action" not in found(client, "scout")
    assert "Action" not in found(client, "disable nobody")
    assert client.get(stop).status_code == 200
    assert "Suspend agent scout?" in client.get(stop).text
    scout.refresh_from_db()
    assert scout.enabled

    client.post("/language/", {"language": "zh-hans", "next": "/find/"})
    assert "停用智能体 scout" in found(client, "停用scout")

    client.force_login(vera)
    client.post("/language/", {"language": "en", "next": "/find/"})
    assert "Action" not in found(client, "deny scout")


def test_tools_are_found_by_words_of_their_descriptions_in_any_script(
    client: Client, vera: User, olga: User
) -> None:
    tool = {
        "name": "report_v2",
        "description": "返回结构化天气数据",
        "inputSchema": {"type": "object"},
    }
    offering = scenery.server("wx", olga, tool)
    search_index.note({Tool.objects.get(exposed_name="wx.report_v2"): tool})
    client.force_login(vera)

    assert reverse("registry:tool", args=["wx.report_v2"]) in found(client, "天气")
    for text in ("气天", "the", "???"):
        assert "/tools/" not in found(client, text)
    assert offering.slug in found(client, "wx")


def test_only_pages_that_one_may_open_are_offered(client: Client, vera: User) -> None:
    client.force_login(vera)

    pages = found(client, "")

    assert reverse("calls:list") in pages
    assert ">Page<" in found(client, "calls")
    assert reverse("audit:list") not in pages
    assert reverse("registry:register") not in pages


def test_somebody_without_a_role_finds_no_row(
    client: Client, mallory: User, held: UUID, send_mail: Tool
) -> None:
    client.force_login(mallory)

    for text in ("mail", "scout", str(held)):
        assert "/tools/" not in (places := found(client, text))
        assert "/agents/scout" not in places
        assert "/servers/" not in places
        assert "/calls/" not in places


def test_it_is_a_page_without_javascript(as_alice: Client, send_mail: Tool) -> None:
    page = as_alice.get(reverse("find"), {"q": "send_m"})

    assert "<h1>Find</h1>" in page.text
    assert 'name="q" value="send_m"' in page.text
    assert reverse("registry:tool", args=[send_mail.exposed_name]) in page.text


def test_nothing_found_says_what_can_be(as_alice: Client) -> None:
    assert "Nothing here is called “zzz”" in found(as_alice, "zzz")


def test_a_stranger_is_asked_to_sign_in(client: Client) -> None:
    assert client.get(reverse("find")).status_code == 302


def test_it_asks_little_of_the_database(
    as_alice: Client, send_mail: Tool, held: UUID, django_assert_max_num_queries: object
) -> None:
    with django_assert_max_num_queries(12):  # type: ignore[operator]
        found(as_alice, "feed")
