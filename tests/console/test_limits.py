"""Limits in the console: made, changed, disabled, removed; what was used of them; who may."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from audit.models import Entry
from policies.models import Limit, LimitCounter
from registry.services import add_server, assign, create_toolset
from tests.console import scenery
from tests.gateway.limiting import add_limit

pytestmark = pytest.mark.django_db

LIST = "/limits/"


@pytest.fixture
def as_ada(client: Client, db: None) -> Client:
    """An administrator."""
    client.force_login(scenery.person("ada", Role.ADMINISTRATOR))
    return client


def given(**changes: Any) -> dict[str, Any]:
    plain = {"name": "Few", "kind": "calls", "amount": "60", "period": "minute", "effect": "deny"}
    plain |= {"server": "*", "tool": "*", "mode": "enforce"}
    return {**plain, "per": ["agent"], **changes}


@pytest.mark.long
def test_one_is_made_and_recorded(as_ada: Client, scout: Agent) -> None:
    page = as_ada.post(reverse("policies:add_limit"), given(agents=[scout.pk]), follow=True)

    assert "“Few” is saved." in page.text
    assert "60 calls per minute&nbsp;· for each agent" in page.text
    assert list(Limit.objects.get().agents.all()) == [scout]
    assert Entry.objects.get(action="limit.saved").actor == "ada"
    listed = as_ada.get(LIST).text
    assert "60 calls per minute" in listed
    assert "agents: scout" in listed
    changed = as_ada.get(reverse("policies:edit_limit", args=[Limit.objects.get().pk])).text
    assert 'value="60"' in changed


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": ""}, "required"),
        ({"period": ""}, "Choose a period."),
        ({"amount": "many"}, "Enter a number."),
        ({"kind": "cost", "unit": "EUR"}, "Give either the cost of a call"),
        ({"kind": "", "effect": ""}, "required"),
        ({"per": ["moon"]}, "moon is not one of the available choices."),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(
    as_ada: Client, changes: dict[str, Any], said: str
) -> None:
    page = as_ada.post(reverse("policies:add_limit"), given(**changes))

    assert page.status_code == 200
    assert said in page.text
    assert not Limit.objects.exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"server": "mail*", "tool": "send_*"}, ""),
        ({"server": "mialer"}, "It covers nothing today: no server is called “mialer”."),
        ({"tool": "sned_*"}, "It covers nothing today: no published tool fits its patterns"),
    ],
)
def test_one_that_covers_nothing_is_saved_and_says_so(
    as_ada: Client, bob: User, changes: dict[str, Any], said: str
) -> None:
    scenery.server("mailer", bob, scenery.SEND)

    page = as_ada.post(reverse("policies:add_limit"), given(**changes), follow=True).text

    assert "“Few” is saved." in page
    assert said in page
    assert ("It covers nothing" in page) == bool(said)


def test_its_page_says_which_result_field_has_the_cost(as_ada: Client) -> None:
    made = add_limit("cost", 5, cost_result="structuredContent.usage.cost")

    page = as_ada.get(reverse("policies:limit", args=[made.pk])).text

    assert "structuredContent.usage.cost" in page


@pytest.mark.long
def test_one_is_changed_disabled_enabled_and_removed(as_ada: Client) -> None:
    made = add_limit(name="Few")
    here = reverse("policies:limit", args=[made.pk])
    switch = reverse("policies:switch_limit", args=[made.pk])

    page = as_ada.post(
        reverse("policies:edit_limit", args=[made.pk]), given(amount="7"), follow=True
    )
    assert "7 calls per minute" in page.text
    assert "Disable “Few”?" in as_ada.get(switch).text
    assert "it limits nothing" in as_ada.post(switch, {"enabled": "0"}, follow=True).text
    assert Limit.objects.get().mode == "off"
    assert "“Few” is on." in as_ada.post(switch, {"enabled": "1"}, follow=True).text
    assert "Remove “Few”?" in as_ada.get(f"{here}remove/").text
    assert Limit.objects.exists()
    assert "“Few” is removed." in as_ada.post(f"{here}remove/", follow=True).text
    assert not Limit.objects.exists()


def test_what_was_used_stands_on_its_page_and_on_the_agents(
    as_ada: Client, scout: Agent, bob: User
) -> None:
    rate = add_limit(name="Few", amount=60)
    budget = add_limit("cost", 10, name="Money", period="month", effect="ask")
    breaker = add_limit("failures", 3, name="Loop")
    now = timezone.now()
    counted = {"key": f"agent:{scout.pk}", "label": "scout", "agent_id": scout.pk}
    LimitCounter.objects.create(limit=rate, tat=now + timedelta(seconds=30), **counted)
    LimitCounter.objects.create(limit=budget, spent=10, since=now, **counted)
    LimitCounter.objects.create(limit=breaker, until=now + timedelta(minutes=5), **counted)

    page = as_ada.get(reverse("policies:limit", args=[rate.pk])).text
    assert "30 of 60 used" in page
    assert "scout" in page
    assert "Reached" not in page

    as_ada.force_login(bob)
    card = as_ada.get(reverse("policies:agent_limits", args=["scout"])).text
    assert "10 of 10 EUR used" in card
    assert card.count("Reached") == 2
    assert "/limits/" in as_ada.get(reverse("accounts:agent", args=["scout"])).text


@pytest.mark.long
def test_an_agents_page_shows_counts_that_it_shares_with_others(
    as_ada: Client, scout: Agent, bob: User
) -> None:
    server, other = (scenery.server(slug, bob, scenery.SEND) for slug in ("mailer", "other"))
    toolset = create_toolset("desk", by=bob)
    add_server(toolset, server, by=bob)
    assign(toolset, scout, by=bob)
    others = Agent.objects.create(name="others", owner=bob)
    hour = timezone.now() + timedelta(hours=1)
    for name, key, agents in (
        ("Whole server", f"server:{server.pk}", []),
        ("Whole house", "", []),
        ("Only mine", "risk:destroys", [scout]),
        ("Other server", f"server:{other.pk}", []),
        ("Other agents", "", [others]),
    ):
        made = add_limit(name=name, amount=2, period="hour", per=[], agents=agents)
        LimitCounter.objects.create(limit=made, key=key, label=name, tat=hour)

    card = as_ada.get(reverse("policies:agent_limits", args=["scout"])).text

    assert card.count("Reached") == 3
    for name in ("Whole server", "Whole house", "Only mine"):
        assert name in card
    assert "Other" not in card


def test_last_months_money_is_not_this_months(as_ada: Client) -> None:
    made = add_limit("cost", 10, period="month")
    long_ago = timezone.now() - timedelta(days=40)
    LimitCounter.objects.create(limit=made, key="", label="all", spent=10, since=long_ago)

    assert "0 of 10 EUR used" in as_ada.get(reverse("policies:limit", args=[made.pk])).text


@pytest.mark.long
@pytest.mark.parametrize(
    ("role", "may_see"),
    [(Role.OPERATOR, True), (Role.APPROVER, True), (Role.AUDITOR, True), (Role.VIEWER, False)],
)
def test_only_administrators_change_them(client: Client, role: Role, may_see: bool) -> None:
    made = add_limit(name="Few")
    client.force_login(scenery.person("carol", role))
    here = reverse("policies:limit", args=[made.pk])

    for path in (LIST, here):
        page = client.get(path)
        assert page.status_code == (200 if may_see else 403), path
        assert "New limit" not in page.text
        assert f"{here}change/" not in page.text
    for path in ("/new/limit/", f"{here}change/", f"{here}switch/", f"{here}remove/"):
        assert client.get(path).status_code == 403, path
        assert client.post(path, given()).status_code == 403, path
    assert Limit.objects.get().mode == "enforce"


def test_another_agents_use_is_not_shown(client: Client, scout: Agent) -> None:
    client.force_login(scenery.person("carol", Role.VIEWER))

    assert client.get(reverse("policies:agent_limits", args=["scout"])).status_code == 404


def test_the_count_after_approval_is_named_in_the_readers_language(
    as_ada: Client, scout: Agent
) -> None:
    limit = add_limit(agents=[scout])
    counted = {"key": "k", "label": "scout, after approval", "agent_id": scout.pk}
    LimitCounter.objects.create(limit=limit, tat=timezone.now() + timedelta(seconds=30), **counted)

    page = as_ada.get(
        reverse("policies:limit", args=[limit.pk]), headers={"Accept-Language": "zh-CN"}
    )

    assert "after approval" not in page.text
    assert "经批准的调用" in page.text
