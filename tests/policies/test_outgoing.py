"""Secrets in arguments that are sent outside: rules see their kinds, and nobody a value."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from accounts.roles import Role
from policies.conditions import Undecided, compiled
from policies.drafts import read_template
from policies.models import Effect, Rule
from policies.outgoing import Facts
from policies.simulate import suppose
from tests.console import scenery

pytestmark = pytest.mark.django_db

KEY = "AKIAZ7RQWLKJX2MPND4T"


@pytest.fixture
def rule(olga: User) -> Rule:
    """The template, as it is offered."""
    scenery.server("mailer", olga, scenery.SEND)
    values = read_template("secrets", "", "UTC").values
    names = ("name", "effect", "when", "reason")
    return Rule.objects.create(**{name: values[name] for name in names})


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        ({"body": f"the key is {KEY}"}, ["aws_key"]),
        ({"list": [{"password": "hunter2!"}]}, ["password"]),
        ({"body": f"AKIA\u200b{KEY[4:]}"}, ["aws_key"]),
        ({KEY: 1}, ["aws_key"]),
        ({"body": "the key is AKIAIOSFODNN7EXAMPLE", "n": 2**70}, []),
        ({}, []),
    ],
)
def test_kinds_are_found_wherever_they_stand(arguments: Any, kinds: list[str]) -> None:
    assert Facts({"args": arguments})["outgoing.secrets"] == kinds


def test_personal_data_is_a_fact_of_its_own() -> None:
    facts = Facts({"args": {"to": "bob@corp.cn", "card": "4012 8888 8888 1881"}})

    assert facts["outgoing.secrets"] == []
    assert facts["outgoing.personal"] == ["card", "email"]
    with pytest.raises(KeyError):
        facts["outgoing.other"]


def test_what_is_too_large_is_not_decided() -> None:
    condition = compiled("outgoing.secrets.size() == 0", hints=False)

    with pytest.raises(Undecided, match="too large"):
        condition.holds(Facts({"args": {"a": "x"}}), 65 * 1024)


def test_the_template_holds_what_sends_a_secret_outside(rule: Rule, scout: Agent) -> None:
    Rule.objects.create(name="all", effect=Effect.ALLOW)

    def effect(**arguments: str) -> str:
        return suppose("scout", "mailer.send_mail", json.dumps(arguments)).decision.effect

    assert effect(body="Hello") == Effect.ALLOW
    assert effect(body=f"Hello {KEY}") == Effect.ASK
    Rule.objects.filter(pk=rule.pk).update(effect=Effect.DENY)
    assert effect(body=f"Hello {KEY}") == Effect.DENY


def test_explain_and_the_simulator_say_the_kinds_and_no_value(
    rule: Rule, scout: Agent, client: Client
) -> None:
    arguments = json.dumps({"body": KEY})
    out = StringIO()
    call_command("explain", "scout", "mailer.send_mail", arguments, stdout=out)
    client.force_login(scenery.person("ada", Role.ADMINISTRATOR))
    asked = {"agent": "scout", "tool": "mailer.send_mail", "arguments": arguments}
    page = client.get(reverse("policies:explain"), asked).text

    assert "outgoing.secrets = ['aws_key']" in out.getvalue()
    assert KEY not in out.getvalue()
    assert "aws_key" in page
