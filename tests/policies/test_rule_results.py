"""What rules demand for results: the strictest of all rules, of a tool and of its server."""

from io import StringIO
from itertools import permutations

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import Agent, User
from accounts.roles import Role
from audit.models import Entry
from audit.services import SYSTEM
from inspection.results import PASS_ALL, ResultRules, rules_of, stored_rules
from inspection.strictness import combine_rules
from policies.models import Rule
from policies.services import save_rule
from policies.simulate import suppose
from registry.models import Tool
from registry.result_rules import set_result_rules, set_server_result_rules
from tests.console import scenery
from tests.console.test_rules import given as posted
from tests.policies.shadowing import shadowed

CHOICES = st.builds(
    ResultRules,
    schema=st.sampled_from(["", "note", "block"]),
    hidden=st.sampled_from(["", "show", "remove"]),
    secrets=st.booleans(),
    personal=st.booleans(),
    tracebacks=st.booleans(),
    max_bytes=st.none() | st.integers(1024, 9999),
    links=st.booleans(),
    hosts=st.sampled_from(["", "a.org", "*.a.org", "b.a.org a.org", "*.b.a.org c.org"]),
    marking=st.sampled_from(["", "found", "all"]),
    patterns=st.sampled_from(["", "x: 1", "x: 2\ny: 3", "y: 3"]),
)


def plain(rules: ResultRules | None) -> ResultRules:
    """With patterns in an order that does not matter."""
    found = rules or PASS_ALL
    return found._replace(patterns="\n".join(sorted(found.patterns.splitlines())))


@given(CHOICES, CHOICES, CHOICES)
def test_neither_order_nor_repetition_matters(
    one: ResultRules, two: ResultRules, three: ResultRules
) -> None:
    together = plain(combine_rules((one, two, three)))

    assert {plain(combine_rules(order)) for order in permutations((one, two, three))} == {together}
    assert plain(combine_rules((one, combine_rules((two, three))))) == together
    assert plain(combine_rules((combine_rules((one, two, three)), one, two))) == together


@given(CHOICES, CHOICES)
def test_none_of_them_is_loosened(one: ResultRules, two: ResultRules) -> None:
    together = combine_rules((one, two)) or PASS_ALL

    for name in ("secrets", "personal", "tracebacks", "links"):
        assert getattr(together, name) == (getattr(one, name) or getattr(two, name))
    for name, order in (
        ("schema", ["", "note", "block"]),
        ("hidden", ["", "show", "remove"]),
        ("marking", ["", "found", "all"]),
    ):
        values = [order.index(getattr(rules, name)) for rules in (one, two)]
        assert order.index(getattr(together, name)) == max(values)
    assert {*one.patterns.splitlines(), *two.patterns.splitlines()} == {
        *together.patterns.splitlines()
    }


@pytest.mark.parametrize(
    ("one", "two", "hosts"),
    [
        ("a.org", "a.org b.org", "a.org"),
        ("*.a.org", "b.a.org", "b.a.org"),
        ("*.a.org", "*.b.a.org", "*.b.a.org"),
        ("*.a.org", "a.org xa.org", ""),
        ("A.org", "a.org", "a.org"),
        ("a.org", "", ""),
    ],
)
def test_a_link_stays_only_if_each_list_has_its_host(one: str, two: str, hosts: str) -> None:
    lists = (ResultRules(links=True, hosts=one), ResultRules(links=True, hosts=two))

    assert (
        combine_rules(lists) == combine_rules(lists[::-1]) == ResultRules(links=True, hosts=hosts)
    )
    assert combine_rules((lists[0], ResultRules(secrets=True, hosts=two))) == ResultRules(
        links=True, hosts=one.lower(), secrets=True
    )


@pytest.fixture
def tool(olga: User) -> Tool:
    scenery.server("mailer", olga, scenery.SEND)
    return Tool.objects.select_related("server").get(name="send_mail")


def rule(name: str, effect: str = "allow", results: ResultRules = PASS_ALL, **more: object) -> Rule:
    position = Rule.objects.count()
    made = Rule(name=name, effect=effect, position=position, results=stored_rules(results), **more)
    return save_rule(made, by=SYSTEM)


@pytest.mark.django_db
def test_all_rules_that_apply_demand_and_others_do_not(
    tool: Tool, scout: Agent, olga: User
) -> None:
    set_server_result_rules(tool.server, ResultRules(max_bytes=9_000), by=olga)
    rule("all", results=ResultRules(secrets=True))
    rule("small", results=ResultRules(max_bytes=2_000))
    rule("large amounts", results=ResultRules(personal=True), when="args.n > 9")
    rule("people", "ask", ResultRules(hidden="remove"))
    rule("watched", results=ResultRules(tracebacks=True), mode="shadow")
    rule("elsewhere", results=ResultRules(links=True), server="db")

    few, many = (suppose("scout", tool.exposed_name, f'{{"n": {n}}}') for n in (1, 10))
    unclear = suppose("scout", tool.exposed_name, "{}")

    always = [
        "Hidden characters and terminal commands are removed.",
        "Secrets are masked.",
        "Results of more than 2,000 bytes are cut.",
    ]
    assert few.results == always
    assert many.results == [*always[:2], "Personal data is masked.", always[2]]
    # A condition that cannot be judged loosens nothing.
    assert unclear.results == many.results


@pytest.mark.django_db
def test_a_tool_of_its_own_strictness_keeps_it(tool: Tool, scout: Agent, olga: User) -> None:
    set_result_rules(tool, ResultRules(hidden="remove", max_bytes=2_000), by=olga)
    rule("all", results=ResultRules(hidden="show", max_bytes=5_000))

    assert suppose("scout", tool.exposed_name).results == [
        "Hidden characters and terminal commands are removed.",
        "Results of more than 2,000 bytes are cut.",
    ]


@pytest.mark.django_db
def test_explain_and_the_simulator_say_which_rule_demands_what(
    tool: Tool, scout: Agent, client: Client
) -> None:
    rule("masks", results=ResultRules(secrets=True))
    rule("watched", results=ResultRules(personal=True), mode="shadow")
    out = StringIO()
    call_command("explain", "scout", tool.exposed_name, stdout=out)
    client.force_login(scenery.person("ada", Role.ADMINISTRATOR))
    asked = {"agent": "scout", "tool": tool.exposed_name, "arguments": "{}"}
    page = client.get(reverse("policies:explain"), asked).text

    lines = out.getvalue().splitlines()
    place = lines.index("    demands: Secrets are masked.")
    assert lines[place - 1] == "  allow “masks”: covers it; says allow"
    assert "  results: Secrets are masked." in lines
    assert "Personal data is masked." not in out.getvalue() + page
    # Beside its rule, and for the call.
    assert page.count("Secrets are masked.") == 2


@pytest.mark.django_db
def test_the_form_keeps_what_is_chosen_and_the_list_says_it(client: Client) -> None:
    client.force_login(scenery.person("ada", Role.ADMINISTRATOR))
    chosen = {"result_secrets": "on", "result_hidden": "remove", "result_max_bytes": "2048"}

    page = client.post(
        reverse("policies:add_rule"), posted(effect="allow", **chosen), follow=True
    ).text

    made = Rule.objects.get()
    assert rules_of(made.results) == ResultRules(hidden="remove", secrets=True, max_bytes=2048)
    assert "Secrets are masked." in page
    entry = Entry.objects.get(action="rule.saved")
    assert entry.details["rule_results"] == made.results
    shown = client.get(reverse("policies:rule", args=[made.pk]))
    assert 'name="result_max_bytes" value="2048"' in shown.text
    client.post(reverse("policies:rule", args=[made.pk]), posted(effect="allow"))
    made.refresh_from_db()
    assert made.results == {}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "wrong",
    [
        *(
            {"result_max_bytes": "3"},
            {"result_patterns": "mine: ("},
            {"result_hidden": "sometimes"},
        ),
        *({"result_links": "on", "result_hosts": "https://a.org"}, {"result_max_bytes": "many"}),
    ],
)
def test_what_cannot_be_used_is_not_saved(client: Client, wrong: dict[str, str]) -> None:
    client.force_login(scenery.person("ada", Role.ADMINISTRATOR))

    page = client.post(reverse("policies:add_rule"), posted(effect="allow", **wrong))

    assert page.status_code == 200
    assert page.context["form"].errors["results"]
    assert not Rule.objects.exists()


@pytest.mark.django_db
def test_a_denial_demands_nothing() -> None:
    assert rule("never", "deny", ResultRules(secrets=True)).results == {}
    with pytest.raises(ValidationError):
        rule("odd", results=ResultRules(hidden="sometimes"))


@pytest.mark.django_db
def test_a_rule_that_demands_more_is_not_shadowed(tool: Tool) -> None:
    first = rule("all", results=ResultRules(secrets=True))
    same = rule("same", results=ResultRules(secrets=True))
    rule("more", results=ResultRules(secrets=True, personal=True))

    assert shadowed(Rule.objects.in_order()) == {same.pk: first}
