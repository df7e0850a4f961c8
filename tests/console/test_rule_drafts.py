"""What a new rule begins with: a call, another rule, a template."""

from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from accounts.roles import Role
from audit.models import Entry
from calls.record.states import State
from policies.models import Rule
from policies.offers import offers_of
from registry.models import Server, Tool
from tests.console import scenery
from tests.console.test_rules import rule
from tests.publishing import publish_as_read

NEW = "/new/rule/"


@pytest.fixture
def ada(db: None) -> User:
    """Makes rules, and may read calls."""
    return scenery.person("ada", Role.ADMINISTRATOR, Role.APPROVER)


@pytest.fixture
def as_ada(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def values(page: Any) -> dict[str, Any]:
    form = page.context["form"]
    return {name: form[name].value() for name in form.fields}


def posted(page: Any, **changes: Any) -> dict[str, Any]:
    """The form as a browser sends it."""
    return {name: value for name, value in values(page).items() if value} | changes


@pytest.mark.long
def test_a_rule_begins_with_a_calls_agent_tool_and_arguments(
    as_ada: Client, scout: Agent, held: UUID
) -> None:
    address = reverse("calls:make_rule", args=[held])
    assert address in as_ada.get(f"/calls/{held}/").text

    page = as_ada.get(address)

    said = values(page)
    assert (said["server"], said["tool"], said["effect"]) == ("mailer", "send_mail", "ask")
    assert said["name"] == "mailer.send_mail"
    assert said["agents"] == [scout.pk]
    assert "subject is exactly “Minutes of Tuesday”" in page.text
    assert "each of to is one of &quot;ana@example.org&quot;" in page.text

    chosen = ['args.to.all(one, one in ["ana@example.org"])', 'args.options.priority == "high"']
    given = posted(page, when='args.body != ""', offered=chosen, effect="allow")
    assert "is saved." in as_ada.post(address, given, follow=True).text
    made = Rule.objects.get()
    assert made.when == f'(args.body != "") && {" && ".join(chosen)}'
    assert list(made.agents.all()) == [scout]
    assert Entry.objects.filter(action="rule.saved", actor="ada").count() == 1


def test_only_what_is_offered_can_be_chosen(as_ada: Client, held: UUID) -> None:
    address = reverse("calls:make_rule", args=[held])

    page = as_ada.post(address, posted(as_ada.get(address), offered=["true"]))

    assert "offered" in page.context["form"].errors
    assert not Rule.objects.exists()


def test_who_may_not_read_arguments_is_offered_none_of_them(client: Client, held: UUID) -> None:
    client.force_login(scenery.person("adam", Role.ADMINISTRATOR))

    page = client.get(reverse("calls:make_rule", args=[held]))

    assert values(page)["tool"] == "send_mail"
    assert "Minutes of Tuesday" not in page.text
    assert "offered" not in page.context["form"].fields


def test_only_who_makes_rules_makes_one_of_a_call(
    as_alice: Client, held: UUID, mallory: User
) -> None:
    address = reverse("calls:make_rule", args=[held])

    assert address not in as_alice.get(f"/calls/{held}/").text
    assert as_alice.get(address).status_code == 403
    assert as_alice.post(address, {}).status_code == 403
    as_alice.force_login(mallory)
    assert as_alice.get(address).status_code == 403


def test_a_call_that_is_not_there_makes_no_rule(as_ada: Client, held: UUID) -> None:
    nowhere = UUID(int=held.int ^ 1)

    assert as_ada.get(reverse("calls:make_rule", args=[nowhere])).status_code == 404


def test_conditions_of_arguments_are_of_their_kind() -> None:
    arguments = {
        "url": "https://example.org/a?b=c",
        "path": "/srv/reports/a.txt",
        "amount": 12.5,
        "deep": {"most": {"far": {"too": 1}}, "in": True},
        "odd name": 'a "quote"',
        "body": "x" * 81,
        "nothing": None,
        "none": [],
    }

    assert [offer.text for offer in offers_of(arguments)] == [
        'url_host_in(args.url, ["example.org"])',
        'path_within(args.path, "/srv/reports")',
        "args.amount <= 12.5",
        'args.deep["in"] == true',
        'args["odd name"] == "a \\"quote\\""',
    ]
    assert offers_of([1]) == []


@pytest.mark.parametrize(
    "value",
    [
        "https://*.com/x",
        "https://*/x",
        "https://[::1]/x",
        "//x",
        "///x",
        "/./x",
        "/srv/../x",
        "/..//etc/x",
    ],
)
def test_an_agents_text_suggests_nothing_wide(value: str) -> None:
    (offer,) = offers_of({"it": value})

    assert offer.text == f'args.it == "{value}"'


def test_what_does_not_hold_of_the_call_is_not_offered() -> None:
    assert offers_of({"it": "https://a.example\\@b.example/x", "n": 1}) == offers_of({"n": 1})
    # Nobody could say whether it holds.
    assert offers_of({"n": 1, "body": "x" * 2_000_000}) == []


def test_a_rule_is_duplicated_with_all_that_it_says(
    as_ada: Client, scout: Agent, alice: User
) -> None:
    kept = rule("Mails", "deny", server="mailer", when="args.n > 1", mode="shadow", agents=[scout])
    address = f"{NEW}?copy={kept.pk}"
    assert address.replace("&", "&amp;") in as_ada.get(f"/policies/{kept.pk}/").text

    page = as_ada.get(address)
    as_ada.post(address, posted(page))

    copy = Rule.objects.exclude(pk=kept.pk).get()
    assert (copy.name, copy.position) == ("Mails (copy)", 20)
    assert (copy.effect, copy.server, copy.when, copy.mode) == (
        "deny",
        "mailer",
        "args.n > 1",
        "shadow",
    )
    assert list(copy.agents.all()) == [scout]
    assert values(as_ada.get(address))["name"] == "Mails (copy) 2"


@pytest.mark.parametrize("copied", ["0", "999999", "x", "1" * 40])
def test_what_is_not_there_is_not_duplicated(as_ada: Client, copied: str) -> None:
    assert as_ada.get(f"{NEW}?copy={copied}").status_code == 404


@pytest.mark.long
@pytest.mark.parametrize(
    ("template", "effect", "when"),
    [
        ("hours", "ask", "getDayOfWeek('UTC')"),
        ("path", "allow", "path_within"),
        ("amount", "ask", "!max_amount"),
        ("new-tool", "ask", "history.last_approved"),
    ],
)
def test_a_template_fills_a_form_that_can_be_saved(
    as_ada: Client, template: str, effect: str, when: str
) -> None:
    assert f"?template={template}" in as_ada.get(NEW).text
    address = f"{NEW}?template={template}"

    as_ada.post(address, posted(as_ada.get(address)))

    made = Rule.objects.get()
    assert made.effect == effect
    assert when in made.when


@pytest.mark.long
def test_read_only_tools_of_a_server_are_named(as_ada: Client, mailer: Server, olga: User) -> None:
    for name in ("read", "list"):
        scenery.see(mailer, {**scenery.ADD, "name": name})
    publish_as_read(mailer, by=olga)

    page = as_ada.get(f"{NEW}?template=read-only&of=mailer")

    assert values(page)["when"] == 'tool.name in ["list", "read"]'
    assert "names 2 tools that their server calls read-only" in page.text
    as_ada.post(NEW, posted(page))
    assert Rule.objects.get().effect == "allow"
    # None of them, and no such template: an empty form.
    assert "has no published tool" in as_ada.get(f"{NEW}?template=read-only&of=nope").text
    assert values(as_ada.get(f"{NEW}?template=nope"))["when"] == ""


@pytest.mark.long
def test_what_does_not_fit_into_one_condition_is_said(
    as_ada: Client, mailer: Server, olga: User
) -> None:
    made = [scenery.see(mailer, {**scenery.ADD, "name": f"{'t' * 60}{n}"}) for n in range(20)]
    for tool in made:
        Tool.objects.filter(pk=tool.pk).update(published=tool.latest, state=Tool.State.PUBLISHED)

    page = as_ada.get(f"{NEW}?template=read-only&of=mailer")

    assert "A condition has room for 15 of 20 tools." in page.text
    assert len(values(page)["when"]) <= 1000


def test_a_call_of_no_tool_makes_no_rule(
    as_ada: Client, scout: Agent, send_mail: Tool, held: UUID
) -> None:
    lost = scenery.call(scout, send_mail, {}, State.REFUSED, tool_id=None)

    assert reverse("calls:make_rule", args=[lost]) not in as_ada.get(f"/calls/{lost}/").text
    assert as_ada.get(reverse("calls:make_rule", args=[lost])).status_code == 404


def test_a_new_rules_form_reads_each_list_of_choices_once(
    as_ada: Client, scout: Agent, django_assert_max_num_queries: Any
) -> None:
    as_ada.get(NEW)
    with django_assert_max_num_queries(12):
        page = as_ada.get(NEW).text

    assert f'name="agents" value="{scout.pk}"' in page
    assert "There is none yet." not in page
