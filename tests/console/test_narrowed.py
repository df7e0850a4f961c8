"""Charts of one agent's, server's and rule's calls: the overview's, of these alone."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import Agent, User
from benchmarks.pages import QUERIES_MAX
from calls.record.states import State
from calls.views import narrowed_figures
from policies.models import Rule
from registry.models import Tool
from tests.browser import scene
from tests.console import scenery
from tests.console.test_overview import make_call

pytestmark = pytest.mark.django_db


def figures(client: Client, address: str) -> Any:
    response = client.get(address)
    assert response.status_code == 200
    return response.context["figures"]


@pytest.fixture
def rule() -> Rule:
    return Rule.objects.create(name="Mail is read first", effect="ask")


@pytest.fixture
def calls(scout: Agent, send_mail: Tool, alice: User, rule: Rule) -> None:
    """Three of scout's at the mailer, decided by the rule, and one of another agent elsewhere."""
    decided = {"rule_id": rule.pk, "rule": rule.name}
    for state in (State.SUCCEEDED, State.SUCCEEDED, State.TOOL_ERROR):
        make_call(scout, send_mail, state, timedelta(minutes=1), **decided)
    raven = Agent.objects.create(name="raven", owner=scout.owner)
    add = scenery.server("reckoner", alice, scenery.ADD).tools.get()
    make_call(raven, add, State.FAILED, timedelta(minutes=1))


@pytest.mark.long
def test_only_its_calls_are_counted_and_the_figures_add_up(
    as_alice: Client, calls: None, rule: Rule
) -> None:
    for address in (
        "/agents/scout/usage/",
        "/servers/mailer/usage/",
        f"/policies/{rule.pk}/usage/",
    ):
        with CaptureQueriesContext(connection) as asked:
            shown = figures(as_alice, address + "?range=1h")

        assert (shown.total.calls, shown.total.errors) == (3, 1), address
        assert sum(step.counts.calls for step in shown.steps) == 3
        assert shown.durations.p95 is not None
        assert not shown.is_sampled
        assert len(asked) <= QUERIES_MAX, address
    for address in ("/agents/raven/usage/", "/servers/reckoner/usage/"):
        assert figures(as_alice, address).total.by_outcome["error"] == 1
    other = Rule.objects.create(name="Never used", effect="deny")
    assert "No calls in this time" in as_alice.get(f"/policies/{other.pk}/usage/").text


@pytest.mark.long
def test_bars_lead_to_the_agents_calls_and_pages_lead_there(
    as_alice: Client, calls: None, olga: User, rule: Rule
) -> None:
    text = as_alice.get("/agents/scout/usage/").text
    assert "/calls/?agent=scout&amp;since=" in text
    assert "/calls/?since=" not in as_alice.get("/servers/mailer/usage/").text
    assert f"/policies/{rule.pk}/usage/" in as_alice.get("/policies/").text
    assert "/servers/mailer/usage/" in as_alice.get("/servers/mailer/").text
    as_alice.force_login(olga)
    assert "/agents/scout/usage/" in as_alice.get("/agents/scout/").text


@pytest.mark.long
def test_of_many_some_stand_for_all(
    as_alice: Client, scout: Agent, send_mail: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrowing = narrowed_figures.NARROWINGS["agent"]._replace(looked_at=8)
    monkeypatch.setitem(narrowed_figures.NARROWINGS, "agent", narrowing)
    for _ in range(20):
        make_call(scout, send_mail, State.SUCCEEDED)

    shown = figures(as_alice, "/agents/scout/usage/?range=90d")

    assert (shown.total.calls, shown.is_sampled) == (20, True)
    assert shown.total.by_outcome["succeeded"] == 20
    assert "Calls are counted." in as_alice.get("/agents/scout/usage/?range=90d").text


def test_roles_decide_who_sees_them(client: Client, mallory: User, vera: User, rule: Rule) -> None:
    there = f"/policies/{rule.pk}/usage/"
    assert client.get(there).status_code == 302
    client.force_login(mallory)
    assert client.get(there).status_code == client.get("/agents/none/usage/").status_code == 403
    client.force_login(vera)
    assert client.get(there).status_code == 403
    assert client.get("/agents/none/usage/").status_code == 404
    assert client.post(there).status_code == 405


@pytest.mark.long
def test_the_pictures_rule_that_decided_calls_has_them_on_its_page(db: None) -> None:
    shown = scene.office()
    rule = Rule.objects.get(name=scene.ALLOWED["rule"])
    client = Client()
    client.force_login(shown.alice)

    assert "No calls in this time" not in client.get(f"/policies/{rule.pk}/usage/").text
