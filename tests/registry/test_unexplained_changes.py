"""A definition that changed while its server's version stayed is marked so."""

import json
from collections.abc import Callable
from copy import deepcopy
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.roles import Role
from audit.services import SYSTEM
from inspection.definitions import Finding
from registry import services
from registry.models import Discovery, Item, Server, Tool
from registry.models.versioned import difference
from registry.versions.item_versions import ItemSync
from tests.console import scenery
from tests.registry.offering import ADD, Offering

Look = Callable[[Server], Discovery]
CHANGED = {**ADD, "description": "Adds two numbers, and a tip."}


@pytest.fixture
def known(calculator: Server, look: Look, olga: User) -> Server:
    """A server whose tool agents have."""
    look(calculator)
    tool = Tool.objects.get()
    services.publish(tool, by=olga, difference=difference(tool))
    return calculator


def unexplained() -> list[Finding]:
    latest = Tool.objects.get(name="add").latest
    assert latest is not None
    return [one for one in latest.findings.findings if one.family == "change"]


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_a_change_under_one_version_is_shown_in_review_catalogue_and_sarif(
    known: Server, look: Look, offering: Offering, client: Client
) -> None:
    offering.tools = [deepcopy(CHANGED)]

    look(known)

    assert unexplained() == [Finding("unexplained-change", "description", "1.0")]
    client.force_login(scenery.person("ada", Role.OPERATOR))
    said = "Changed, and the version that its server states does not explain it"
    assert said in client.get("/servers/calculator/review/").text
    assert said in client.get("/tools/calculator.add/").text
    assert "Unexplained change" in client.get(reverse("registry:catalogue")).text
    out = StringIO()
    call_command("findings", "--sarif", stdout=out)
    results = json.loads(out.getvalue())["runs"][0]["results"]
    (one,) = [one for one in results if one["ruleId"] == "unexplained-change"]
    assert (one["level"], one["message"]["text"]) == ("warning", f"{said}: 1.0")


@pytest.mark.django_db(transaction=True)
def test_a_new_version_explains_it(known: Server, look: Look, offering: Offering) -> None:
    offering.tools = [deepcopy(CHANGED)]
    offering.info = {"name": "offering", "version": "1.1"}

    look(known)

    assert unexplained() == []


@pytest.mark.django_db(transaction=True)
def test_a_version_that_was_raised_before_the_change_does_not(
    known: Server, look: Look, offering: Offering
) -> None:
    offering.info = {"name": "offering", "version": "1.1"}
    look(known)
    offering.tools = [deepcopy(CHANGED)]

    look(known)

    assert unexplained() == [Finding("unexplained-change", "description", "1.1")]


@pytest.mark.django_db(transaction=True)
def test_a_server_without_a_version_explains_nothing(
    known: Server, look: Look, offering: Offering
) -> None:
    offering.info = {"name": "offering"}
    look(known)
    offering.tools = [deepcopy(CHANGED)]

    look(known)

    assert unexplained() == [Finding("unexplained-change", "description")]


@pytest.mark.django_db(transaction=True)
def test_new_icons_and_a_first_look_need_no_explanation(
    calculator: Server, look: Look, offering: Offering
) -> None:
    look(calculator)
    assert unexplained() == []
    offering.tools = [{**deepcopy(ADD), "icons": []}]

    look(calculator)

    assert Tool.objects.get().latest.version == 2  # type: ignore[union-attr]
    assert unexplained() == []


@pytest.mark.django_db
def test_instructions_need_one_and_resources_are_data(calculator: Server) -> None:
    said: dict[str, dict[str, object]] = {
        "instructions": {"name": "instructions", "text": "Be kind."},
        "resource": {"uri": "a:b", "name": "b", "size": 1},
    }
    changes: list[dict[str, object]] = [{}, {"text": "Be quick."}, {"size": 2}]
    for change in changes:
        for kind, item in said.items():
            sync = ItemSync(calculator, Item.Kind(kind), {}, "1.0")
            sync.take({**item, **change})
            sync.see(by=SYSTEM)

    found = {one.kind: one.latest.findings.is_unexplained for one in Item.objects.all()}  # type: ignore[union-attr]
    assert found == {"instructions": True, "resource": False}
