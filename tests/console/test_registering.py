"""Registering a server as an operator does: by URL, by command, by what stands in a client."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from inspection.results import ResultRules
from registry import connections, pasting, result_rules
from registry.models import Discovery, Server, Tool
from registry.models.versioned import difference
from registry.publishing import published_catalogue
from tests.console import scenery
from tests.registry.offering import ADD, Offering, serving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def offering() -> Offering:
    offering = Offering()
    offering.tools = [ADD]
    return offering


@pytest.fixture
def address(offering: Offering) -> Iterator[str]:
    with serving(offering) as url:
        yield f"{url}/mcp"


@pytest.fixture
def commands(settings: Any, tmp_path: Path) -> Callable[..., None]:
    def write(**listed: Any) -> None:
        settings.STDIO_CATALOGUE = tmp_path / "stdio.json"
        settings.STDIO_CATALOGUE.write_bytes(orjson.dumps(listed))

    return write


def register(client: Client, by: str = "url", *, htmx: bool = False, **given: str):
    headers = {"HX-Request": "true"} if htmx else {}
    return client.post(f"{reverse('registry:register')}?by={by}", given, headers=headers)


def test_a_test_shows_what_is_offered_and_saves_nothing(as_olga: Client, address: str) -> None:
    page = register(as_olga, slug="calc", url=address, test="1")

    assert "calc answers and offers 1 tool." in page.text
    assert "Adds two numbers." in page.text
    assert not Server.objects.exists()
    assert not Discovery.objects.exists()
    assert not Entry.objects.filter(action__startswith="server.").exists()


def test_a_test_by_htmx_answers_with_its_piece(as_olga: Client, address: str) -> None:
    page = register(as_olga, slug="calc", url=address, test="1", htmx=True)

    assert "calc answers" in page.text
    assert "<html" not in page.text


def test_what_the_server_says_on_failure_is_shown(
    as_olga: Client, address: str, offering: Offering
) -> None:
    offering.status = 401

    page = register(as_olga, slug="calc", url=address, test="1")

    assert "calc: connection failed." in page.text
    assert "401" in page.text


def test_the_test_sends_the_credential_and_never_shows_it(
    as_olga: Client, address: str, offering: Offering
) -> None:
    page = register(as_olga, slug="calc", url=address, credential="s3cret-token", test="1")

    assert {"Bearer s3cret-token"} == {asked.get("Authorization") for asked in offering.asked}
    assert "s3cret-token" not in page.text


def test_registering_looks_at_once_and_leads_to_the_review(
    as_olga: Client, olga: User, address: str
) -> None:
    response = register(as_olga, slug="calc", url=address, credential="s3cret", title="Sums")

    assert response["Location"] == reverse("registry:review", args=["calc"])
    server = Server.objects.get()
    assert (server.owner, server.title, server.health) == (olga, "Sums", "ok")
    assert connections.connection(server, connections.Commands()).headers == {
        "Authorization": "Bearer s3cret"
    }
    review = as_olga.get(response["Location"]).text
    assert "calc.add" in review
    assert "s3cret" not in review
    assert Tool.objects.get().state == Tool.State.NEW
    assert Entry.objects.get(action="server.registered").actor == "olga"


def test_published_by_wish_on_the_first_look(as_olga: Client, address: str) -> None:
    register(as_olga, slug="calc", url=address, publish="on")

    assert Tool.objects.get().state == Tool.State.PUBLISHED


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"slug": "Calc!"}, "slug", "would do"),
        ({"slug": "taken"}, "slug", "taken by"),
        ({"slug": ""}, "slug", "required"),
        ({"url": "ftp://example.org"}, "url", "https://"),
        ({"url": "http://10.0.0.1/mcp"}, "url", "not public"),
        ({"url": "https://u:p@example.org/"}, "url", "user name"),
        ({"headers": "no colon"}, "headers", "colon"),
        ({"headers": "Host: evil"}, "headers", "may be set"),
        ({"credential": "two words"}, "credential", "without spaces"),
    ],
)
def test_what_cannot_be_is_said_at_its_field(
    as_olga: Client, olga: User, changes: dict[str, Any], field: str, said: str
) -> None:
    scenery.server("taken", olga)

    given: dict[str, Any] = {"slug": "calc", "url": "http://127.0.0.1:9/mcp", **changes}
    page = register(as_olga, **given)

    assert said in " ".join(page.context["form"].errors[field])
    assert Server.objects.count() == 1


def test_a_command_comes_only_from_the_hosts_catalogue(
    as_olga: Client, commands: Callable[..., None]
) -> None:
    commands(calc={"argv": ["/usr/bin/false"], "title": "Calculator"})

    page = as_olga.get(reverse("registry:register"), {"by": "command"}).text
    refused = register(as_olga, "command", slug="calc", command="/bin/sh -c id")

    assert "calc · Calculator" in page
    assert refused.context["form"].errors["command"]
    assert not Server.objects.exists()


def test_a_command_that_ends_at_once_is_told_with_its_words(
    as_olga: Client, commands: Callable[..., None]
) -> None:
    commands(calc={"argv": ["/bin/sh", "-c", "echo no key given >&2; exit 3"]})

    page = register(as_olga, "command", slug="calc", command="calc", test="1")

    assert "calc: connection failed." in page.text
    assert "no key given" in page.text


def test_the_server_of_statements_is_offered_on_every_host(
    as_olga: Client, commands: Callable[..., None]
) -> None:
    commands()

    page = as_olga.get(reverse("registry:register"), {"by": "command"})

    assert "statements · Statements" in page.text


def test_a_host_without_commands_says_so(
    as_olga: Client, commands: Callable[..., None], settings: Any
) -> None:
    commands()
    settings.BUILT_IN_COMMANDS = {}

    page = as_olga.get(reverse("registry:register"), {"by": "command"})

    assert "No commands on this host" in page.text


def test_several_pasted_servers_are_tested_and_registered(as_olga: Client, address: str) -> None:
    pasted = {
        "mcpServers": {
            "One": {"url": address, "headers": {"X-Key": "k1"}},
            "two": {"type": "http", "url": address},
        }
    }
    text = orjson.dumps(pasted).decode()

    tested = register(as_olga, "paste", pasted=text, test="1")
    saved = register(as_olga, "paste", pasted=text)

    assert tested.text.count("answers and offers 1 tool") == 2
    assert saved["Location"] == "/catalogue/?state=unpublished"
    assert set(Tool.objects.values_list("exposed_name", flat=True)) == {"one.add", "two.add"}


def test_one_bad_name_registers_none(as_olga: Client, address: str) -> None:
    pasted = {"servers": {"good": {"url": address}, "countersign": {"url": address}}}

    page = register(as_olga, "paste", pasted=orjson.dumps(pasted).decode())

    assert "countersign" in page.context["form"].errors["pasted"][0]
    assert not Server.objects.exists()


PASTED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"mcpServers": {"a": {"url": "https://a/mcp"}}}, {"slug": "a", "url": "https://a/mcp"}),
    ({"mcpServers": {"A b": {"httpUrl": "https://a"}}}, {"slug": "a-b", "url": "https://a"}),
    ({"servers": {"a": {"type": "http", "url": "https://a"}}}, {"slug": "a", "url": "https://a"}),
    ({"mcp": {"servers": {"a": {"url": "https://a"}}}}, {"slug": "a", "url": "https://a"}),
    ({"a": {"url": "https://a"}}, {"slug": "a", "url": "https://a"}),
    (
        {
            "name": "io.example/weather",
            "title": "Weather",
            "remotes": [
                {"type": "sse", "url": "https://w/sse"},
                {
                    "type": "streamable-http",
                    "url": "https://w/mcp",
                    "headers": [{"name": "X-Key", "value": "v"}],
                },
            ],
        },
        {"slug": "weather", "url": "https://w/mcp", "headers": {"X-Key": "v"}, "title": "Weather"},
    ),
]


@pytest.mark.parametrize(("pasted", "found"), PASTED)
def test_each_known_form_is_read(pasted: dict[str, Any], found: dict[str, Any]) -> None:
    assert pasting.read(orjson.dumps(pasted).decode()) == [pasting.PastedServer(**found)]


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"command": "npx", "args": ["-y", "x"]}, "catalogue of commands"),
        ({"type": "sse", "url": "https://a"}, "Streamable HTTP"),
        ({"url": "https://a", "headers": {"X": "${env:KEY}"}}, "placeholder"),
        ({"url": "https://{tenant}.example/mcp"}, "placeholder"),
        ({"url": "https://a", "headers": {"X": 1}}, "not names with texts"),
        ({}, "no URL"),
        ([], "not an object"),
    ],
)
def test_what_cannot_be_registered_says_why(server: Any, said: str) -> None:
    (found,) = pasting.read(orjson.dumps({"mcpServers": {"a": server}}).decode())

    assert said in found.problem


def test_a_required_header_without_a_value_is_asked_for() -> None:
    remote = {
        "type": "streamable-http",
        "url": "https://a",
        "headers": [{"name": "X-Key", "isRequired": True}],
    }
    (found,) = pasting.read(orjson.dumps({"name": "a/b", "remotes": [remote]}).decode())

    assert "X-Key" in found.problem


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["Weather", "weather"], "2 of them would have this name"),
        (["天气"], "none of the characters allowed in names"),
    ],
)
def test_servers_that_would_have_one_name_or_none_are_named(names: list[str], said: str) -> None:
    servers = {name: {"url": "https://a/mcp"} for name in names}

    found = pasting.read(orjson.dumps({"mcpServers": servers}).decode())

    assert [said in one.problem for one in found] == [True] * len(names)


def test_a_name_that_is_there_twice_is_not_lost_without_a_word() -> None:
    text = '{"mcpServers": {"a": {"url": "https://one"}, "a": {"url": "https://two"}}}'

    with pytest.raises(pasting.PasteRefused, match="“a” is there twice"):
        pasting.read(text)


def test_servers_at_two_places_are_all_read() -> None:
    both = {
        "mcpServers": {"a": {"url": "https://a"}},
        "mcp": {"servers": {"b": {"url": "https://b"}}},
    }

    assert [one.slug for one in pasting.read(orjson.dumps(both).decode())] == ["a", "b"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '"x"', '{"a": 1}', '{"mcpServers": []}'])
def test_what_is_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(pasting.PasteRefused):
        pasting.read(text)


def review(client: Client, slug: str, **given: str):
    return client.post(reverse("registry:review", args=[slug]), given, follow=True)


def test_tools_are_published_one_by_one_or_together(as_olga: Client, olga: User) -> None:
    multiply = {**scenery.ADD, "name": "multiply"}
    subtract = {**scenery.ADD, "name": "subtract"}
    scenery.server("calc", olga, scenery.ADD, multiply, subtract, publish=False)
    tools = {tool.name: tool for tool in Tool.objects.select_related("latest")}
    digests = {f"digest-{t.pk}": difference(t) for t in tools.values()}
    one = f"digest-{tools['add'].pk}"

    review(as_olga, "calc", **{one: digests[one]})
    published = Tool.objects.filter(state=Tool.State.PUBLISHED)
    assert [tool.name for tool in published.all()] == ["add"]
    page = review(as_olga, "calc", **digests)

    assert published.count() == 3
    assert "Published: 2." in page.text
    assert "Publish selected" not in page.text
    assert "published already" in review(as_olga, "calc", **digests).text


def test_what_moved_since_it_was_read_is_not_published(as_olga: Client, olga: User) -> None:
    server = scenery.server("calc", olga, scenery.ADD, publish=False)
    tool = Tool.objects.select_related("latest").get()
    shown = difference(tool)
    scenery.see(server, {**scenery.ADD, "description": "Sends your files away."})

    page = review(as_olga, "calc", **{f"digest-{tool.pk}": shown})

    assert "changed since it was reviewed" in page.text
    tool.refresh_from_db()
    assert tool.state == Tool.State.NEW


def test_the_connection_is_set_anew_with_its_secrets(
    as_olga: Client, olga: User, address: str
) -> None:
    server = scenery.server("calc", olga, scenery.ADD)
    edit = reverse("registry:edit_server", args=["calc"])
    assert "http://127.0.0.1:9/mcp" in as_olga.get(edit).text

    as_olga.post(edit, {"url": address, "credential": "brand-new"})

    server.refresh_from_db()
    assert (server.url, server.connection_version) == (address, 2)
    assert "brand-new" not in as_olga.get(edit).text
    assert Tool.objects.get().state == Tool.State.CHANGED
    assert Entry.objects.filter(action="server.connection_set", actor="olga").exists()


def test_a_new_connection_is_tested_without_saving(
    as_olga: Client, olga: User, address: str
) -> None:
    server = scenery.server("calc", olga, scenery.ADD)
    edit = reverse("registry:edit_server", args=["calc"])

    page = as_olga.post(edit, {"url": address, "test": "1"})

    assert "calc answers" in page.text
    server.refresh_from_db()
    assert server.connection_version == 1


def test_what_a_server_may_ask_of_agents_is_set_and_recorded(as_olga: Client, olga: User) -> None:
    server = scenery.server("calc", olga, scenery.ADD)
    assert server.relays == ["elicitation", "roots"]
    may_ask = reverse("registry:set_server_relays", args=["calc"])

    page = as_olga.post(may_ask, {"relay": ["sampling", "roots", "secrets"]}, follow=True)

    server.refresh_from_db()
    assert server.relays == ["roots", "sampling"]
    assert 'value="sampling" checked' in page.text
    assert 'value="elicitation">' in page.text
    entry = Entry.objects.get(action="server.relays_set")
    assert (entry.actor, entry.details["relays"]) == ("olga", ["roots", "sampling"])
    as_olga.post(may_ask)
    server.refresh_from_db()
    assert server.relays == []


def test_result_rules_of_a_server_are_those_of_tools_without_their_own(
    as_olga: Client, olga: User
) -> None:
    server = scenery.server("calc", olga, scenery.ADD)
    (tool,) = server.tools.all()
    there = reverse("registry:set_server_results", args=["calc"])
    page = reverse("registry:tool", args=[tool.exposed_name])

    as_olga.post(there, {"result_secrets": "on", "result_max_bytes": "4096"})
    as_olga.post(there, {"result_secrets": "on", "result_max_bytes": "4096"})

    taken = published_catalogue.one(tool.pk)
    assert taken
    assert taken.result_rules == ResultRules(secrets=True, max_bytes=4096)
    entry = Entry.objects.get(action="server.result_rules_set")
    assert (entry.actor, entry.server, entry.details["secrets"]) == ("olga", "calc", True)
    assert "As chosen for all tools of its server:" in as_olga.get(page).text
    assert "Secrets are masked." in as_olga.get(page).text

    result_rules.set_result_rules(tool, ResultRules(hidden="remove"), by=olga)

    taken = published_catalogue.one(tool.pk)
    assert taken
    assert taken.result_rules == ResultRules(hidden="remove")
    assert "The choices of its server do not apply" in as_olga.get(page).text
    told = Entry.objects.get(action="tool.result_rules_set").details
    assert told["instead_of"] == {"secrets": True, "max_bytes": 4096}
    result_rules.set_result_rules(tool, ResultRules(), by=olga)
    taken = published_catalogue.one(tool.pk)
    assert taken
    assert taken.result_rules == ResultRules(secrets=True, max_bytes=4096)


def test_result_rules_of_a_server_that_cannot_be_used_are_not_saved(
    as_olga: Client, olga: User
) -> None:
    server = scenery.server("calc", olga, scenery.ADD)
    there = reverse("registry:set_server_results", args=["calc"])

    said = [
        as_olga.post(there, given, follow=True).text
        for given in (
            {"result_patterns": "mine: (", "result_hosts": "a.org"},
            {"result_hidden": "some"},
        )
    ]

    assert "cannot be used" in said[0]
    assert "mine: (</textarea>" in said[0]
    assert 'value="a.org"' in said[0]
    assert "is not one of the available choices" in said[1]
    server.refresh_from_db()
    assert server.result_rules == {}


def test_methods_of_extensions_are_listed_and_wait_to_be_published(
    as_olga: Client, address: str
) -> None:
    register(as_olga, slug="calc", url=address)
    lists = reverse("registry:edit_server", args=["calc"])

    page = as_olga.post(lists, {"methods": " acme/search\r\n\r\nacme/versions "}, follow=True)

    assert "calc.acme/search" in page.text
    assert "calc.acme/versions" in page.text
    server = Server.objects.get()
    assert server.methods == ["acme/search", "acme/versions"]
    entry = Entry.objects.get(action="server.methods_set")
    assert (entry.actor, entry.details["methods"]) == ("olga", server.methods)
    as_olga.post(lists, {"methods": "acme/versions\nacme/search"})
    assert Entry.objects.filter(action="server.methods_set").count() == 1
    as_olga.post(lists, {"methods": "acme/versions"})
    states = Tool.objects.values_list("name", "state").order_by("name")
    assert list(states) == [("acme/search", "retired"), ("acme/versions", "new"), ("add", "new")]
    gone = Entry.objects.get(action="tool.retired")
    assert (gone.actor, gone.tool) == ("olga", "calc.acme/search")


def test_a_method_has_pages_like_a_tool(as_olga: Client, address: str) -> None:
    register(as_olga, slug="calc", url=address)
    lists = reverse("registry:edit_server", args=["calc"])
    as_olga.post(lists, {"methods": "acme/versions"})

    page = as_olga.get(reverse("registry:tool", args=["calc.acme/versions"]))

    assert "calc.acme/versions" in page.text
    versions = reverse("registry:tool_versions", args=["calc.acme/versions"])
    assert versions in page.text
    assert as_olga.get(versions).status_code == 200
    made = Tool.objects.get(name="acme/versions")
    publish = reverse("registry:publish", args=["calc.acme/versions"])
    as_olga.post(publish, {f"digest-{made.pk}": difference(made)})
    assert Tool.objects.get(name="acme/versions").state == Tool.State.PUBLISHED


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("acme/search\ntools/acme", "“tools/acme” is a method of MCP itself"),
        ("Resources/Read", "“Resources/Read” is a method of MCP itself"),
        ("initialize", "“initialize” is a method of MCP itself"),
        ("acme", "“acme” is no method of an extension: write prefix/name"),
        ("acme//search", "is no method of an extension"),
        ("acme/suche nach", "is no method of an extension"),
        ("acme/söka", "is no method of an extension"),
        ("a/" + "b" * 99, "has 101 characters, of which 100 are allowed"),
        ("acme/search\nacme/Search", "only one of them can be listed"),
        ("\n".join(f"acme/{n}x{n}" for n in range(51)), "At most 50 methods"),
    ],
)
def test_what_no_extension_can_have_is_refused_at_the_field(
    as_olga: Client, olga: User, given: str, said: str
) -> None:
    scenery.server("calc", olga, scenery.ADD)

    page = as_olga.post(reverse("registry:edit_server", args=["calc"]), {"methods": given})

    assert said in page.text
    assert 'id="id_methods_error"' in page.text
    assert 'id="id_url_error"' not in page.text
    assert given.splitlines()[0] in page.text
    assert Server.objects.get().methods == []
    assert not Entry.objects.filter(action="server.methods_set").exists()


def test_as_many_and_as_long_as_there_may_be_are_taken(as_olga: Client, address: str) -> None:
    slug = "s" * 32
    register(as_olga, slug=slug, url=address)
    methods = sorted(f"{'a' * 48}.$-_/{n:02}{'x' * 45}" for n in range(50))
    assert {len(method) for method in methods} == {100}

    lists = reverse("registry:edit_server", args=[slug])
    page = as_olga.post(lists, {"methods": "\n".join(methods)}, follow=True)

    assert page.status_code == 200
    found = Tool.objects.filter(name__contains="/").values_list("name", flat=True)
    assert sorted(found) == methods
    assert as_olga.get(reverse("registry:tool", args=[f"{slug}.{methods[0]}"])).status_code == 200


def test_a_server_is_switched_off_and_on(as_olga: Client, olga: User) -> None:
    server = scenery.server("calc", olga, scenery.ADD)
    switch = reverse("registry:set_server_enabled", args=["calc"])

    as_olga.post(switch, {"enabled": "0"})
    server.refresh_from_db()
    assert not server.enabled
    as_olga.post(switch, {"enabled": "1"})

    actions = Entry.objects.filter(action__in=["server.enabled", "server.disabled"])
    assert actions.count() == 2


PAGES = [
    ("register", []),
    ("edit_server", ["calc"]),
    ("set_server_enabled", ["calc"]),
    ("set_server_relays", ["calc"]),
    ("set_server_results", ["calc"]),
    ("set_server_revision", ["calc"]),
    ("review", ["calc"]),
]


@pytest.mark.parametrize(("name", "args"), PAGES)
@pytest.mark.parametrize("role", [Role.VIEWER, Role.APPROVER, Role.AUDITOR, Role.ADMINISTRATOR])
def test_only_operators_register_and_change(
    client: Client, olga: User, name: str, args: list[str], role: Role
) -> None:
    scenery.server("calc", olga, scenery.ADD, publish=False)
    client.force_login(scenery.person("somebody", role))

    assert client.post(reverse(f"registry:{name}", args=args)).status_code == 403
    assert Tool.objects.get().state == Tool.State.NEW


@pytest.mark.parametrize(("name", "args"), PAGES)
def test_changes_need_the_forms_own_token(olga: User, name: str, args: list[str]) -> None:
    scenery.server("calc", olga, scenery.ADD, publish=False)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(olga)

    assert strict.post(reverse(f"registry:{name}", args=args)).status_code == 403
