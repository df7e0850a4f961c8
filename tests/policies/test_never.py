"""Conditions that can never hold are found, and no other is said to be one."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from accounts.roles import Role
from policies.models import Effect, Rule
from policies.unsatisfiable import why_never
from tests.console import scenery
from tests.policies.shadowing import shadowed

OPTIONS: Any = scenery.SEND["inputSchema"]


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("false", "always false"),
        ("true && !true", "always false"),
        ("args.n > 5 && args.n < 3", "args.n > 5 and args.n < 3 are never so together"),
        ("args.n > 5 && args.n <= 5", "never so together"),
        ("!(args.n <= 5 || args.n >= 5)", "never so together"),
        ("args.a == 'x' && args.a == 'y'", "never so together"),
        ("args.a == 'x' && args.a != 'x'", "never so together"),
        ("args.a in ['x', 'y'] && args['a'] == 'z'", "never so together"),
        ("args.a in ['x'] && !(args.a in ['x', 'y'])", "never so together"),
        ("args.f && !args.f", "never so together"),
        ("args.n == 1 && args.n == 2.0 || false", "never so"),
        ("args.options.priority == 'urgent'", "args.options.priority == 'urgent' is never so"),
        ("args.options.copies > 5", "args.options.copies > 5 is never so"),
        ("args.options.copies < 1", "is never so"),
        ("5 < args.options.copies", "args.options.copies > 5 is never so"),
        ("args.options.copies > 2 && args.options.copies < 3", "never so together"),
        ("has(args.options) && args.options.copies == -1", "is never so"),
        ("tool.name == 'send' && args.n > 1", "tool.name == 'send' is never so"),
        ("tool.server != 'mailer'", "is never so"),
        ("tool.risk == 'high'", "is never so"),
        ("history.calls_1h < 0", "is never so"),
    ],
)
def test_what_never_holds(when: str, said: str) -> None:
    assert said in why_never(when, server="mailer", tool="send_mail", schema=OPTIONS)


@pytest.mark.parametrize(
    "when",
    [
        "true",
        "args.n > 5 && args.n < 7",
        "args.n >= 5 && args.n <= 5.0",
        "args.n > 5 || args.n < 3",
        "args.n > 2 && args.n < 3",
        "args.a == 'x' || args.a == 'y'",
        "args.a != 'x' && args.a != 'y'",
        "args.options.priority in ['urgent', 'high']",
        "args.options.priority != 'high'",
        "args.options.copies > 4",
        "args.to.exists(x, x == 'a' && x == 'b')",
        "args.n == 1 && args.m == 2",
        "args.n == 1 && args.n == args.m",
        "tool.name == 'send_mail'",
        "history.calls_1h < 1",
        "tool.risk in ['high', 'reads']",
        "'x' in tool.tags && !('y' in tool.tags)",
        "this is no CEL",
    ],
)
def test_what_may_hold(when: str) -> None:
    assert why_never(when, server="mailer", tool="send_mail", schema=OPTIONS) == ""


def test_a_pattern_says_nothing_of_a_name() -> None:
    assert why_never("tool.name == 'x'", server="*", tool="send*") == ""


def test_the_rules_page_says_why(client: Client, olga: User) -> None:
    scenery.server("mailer", olga, scenery.SEND)
    client.force_login(scenery.person("ada", Role.ADMINISTRATOR))
    Rule.objects.create(
        name="urgent", effect=Effect.DENY, server="mailer", tool="send_mail",
        when="args.options.priority == 'urgent'",
    )  # fmt: skip

    page = client.get("/policies/").text

    assert "Its condition never holds." in page
    assert "args.options.priority ==" in page


@pytest.mark.django_db
def test_a_rule_with_the_same_condition_is_shadowed_and_with_another_not() -> None:
    first = Rule.objects.create(name="a", effect="deny", when="args.n > 1", position=1)
    same = Rule.objects.create(name="b", effect="deny", when="args.n > 1", position=2)
    Rule.objects.create(name="c", effect="deny", when="args.n > 2", position=3)

    assert shadowed(Rule.objects.in_order()) == {same.pk: first}


@pytest.mark.django_db
def test_a_rule_without_arguments_in_messages_is_not_shadowed_by_one_with_them() -> None:
    shows = Rule.objects.create(name="a", effect="ask", shows_arguments=True, position=1)
    Rule.objects.create(name="b", effect="ask", position=2)
    same = Rule.objects.create(name="c", effect="ask", shows_arguments=True, position=3)

    assert shadowed(Rule.objects.in_order()) == {same.pk: shows}
