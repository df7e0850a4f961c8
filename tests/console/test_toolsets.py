"""Toolsets: choosing what is in them, names that get too long, and what people paste."""

import base64
import json
import tomllib
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from audit.models import Entry
from registry.models import Server, Toolset
from registry.views import client_snippets
from tests.console import scenery
from tests.processes import ROOT

PAGE = ROOT / "docs" / "en" / "guides" / "connect-clients.md"
URL = "http://127.0.0.1:8001/mcp/default"


@pytest.fixture
def office(olga: User) -> Toolset:
    return Toolset.objects.create(slug="office")


def at(name: str, toolset: Toolset) -> str:
    return reverse(f"registry:{name}", args=[toolset.slug])


def actions() -> list[str]:
    found = Entry.objects.filter(action__startswith="toolset.").order_by("id")
    return list(found.values_list("action", flat=True))


def test_a_toolset_is_made_and_recorded(as_olga: Client) -> None:
    given = {"slug": "office", "title": "The office"}

    page = as_olga.post(reverse("registry:add_toolset"), given, follow=True)

    assert "Choose what is in it" in page.text
    assert "/mcp/office" in page.text
    assert actions() == ["toolset.created"]


@pytest.mark.parametrize("given", ["²", "9" * 18, "9" * 30, "9" * 4400])
def test_a_number_that_names_nothing_is_passed_over(
    as_olga: Client, office: Toolset, given: str
) -> None:
    answer = as_olga.post(at("set_toolset_servers", office), {"server": [given]})

    assert answer.status_code == 302
    assert not office.servers.exists()


@pytest.mark.parametrize(("slug", "said"), [("office", "already exists"), ("a b", "valid")])
def test_a_name_that_cannot_be_is_said_at_its_field(
    as_olga: Client, office: Toolset, slug: str, said: str
) -> None:
    page = as_olga.post(reverse("registry:add_toolset"), {"slug": slug})

    assert said in page.context["form"].errors["slug"][0]


def test_whole_servers_come_and_go(as_olga: Client, office: Toolset, mailer: Server) -> None:
    as_olga.post(at("set_toolset_servers", office), {"server": [mailer.pk]})
    assert "mailer.send_mail" in as_olga.get(at("toolset", office)).text
    as_olga.post(at("set_toolset_servers", office), {"server": [mailer.pk]})
    as_olga.post(at("set_toolset_servers", office), {})

    assert not office.servers.exists()
    assert actions() == ["toolset.added", "toolset.removed"]


def test_single_tools_are_found_added_and_removed(
    as_olga: Client, office: Toolset, mailer: Server
) -> None:
    tool = mailer.tools.get()
    page = as_olga.get(at("toolset", office), {"q": "send"})
    assert [(s.slug, tools) for s, tools in page.context["found"]] == [("mailer", [tool])]

    as_olga.post(at("add_tools", office), {"tool": [tool.pk, "x"]})
    assert list(office.tools.all()) == [tool]
    again = as_olga.get(at("toolset", office), {"q": "send"})
    assert again.context["found"] == []
    as_olga.post(at("remove_tools", office), {"tool": [tool.pk]})

    assert not office.tools.exists()
    assert actions() == ["toolset.added", "toolset.removed"]


def test_agents_come_and_go(as_olga: Client, office: Toolset, scout: Agent) -> None:
    as_olga.post(at("set_toolset_agents", office), {"agent": [scout.pk]})
    assert list(office.agents.all()) == [scout]
    as_olga.post(at("set_toolset_agents", office), {})

    assert actions() == ["toolset.added", "toolset.removed"]


def test_a_title_is_changed_once(as_olga: Client, office: Toolset) -> None:
    for _again in range(2):
        as_olga.post(at("set_toolset_title", office), {"title": "The office"})

    office.refresh_from_db()
    assert office.title == "The office"
    assert actions() == ["toolset.renamed"]


def test_tools_for_own_calls_are_chosen(as_olga: Client, office: Toolset) -> None:
    page = as_olga.get(at("toolset", office)).text
    assert page.count('name="own"') == 6
    assert 'value="explain"' in page
    assert 'value="explain" checked' not in page

    as_olga.post(at("set_toolset_own_tools", office), {"own": ["explain", "await_call", "x"]})
    as_olga.post(at("set_toolset_own_tools", office), {"own": ["await_call", "explain"]})

    office.refresh_from_db()
    assert office.own_tools == ["await_call", "explain"]
    assert actions() == ["toolset.own_tools_set"]


def test_agents_search_where_that_is_chosen(as_olga: Client, office: Toolset) -> None:
    as_olga.post(at("set_toolset_search_mode", office), {"mode": "search"})
    as_olga.post(at("set_toolset_search_mode", office), {"mode": "search"})

    office.refresh_from_db()
    assert office.search_mode
    assert 'value="search" checked' in as_olga.get(at("toolset", office)).text
    assert actions() == ["toolset.search_mode_set"]


def test_readers_of_the_registry_are_chosen(as_olga: Client, office: Toolset) -> None:
    for wanted in ("anyone", "anyone", "everyone", ""):
        as_olga.post(at("set_toolset_registry", office), {"readers": wanted})

    office.refresh_from_db()
    assert office.registry_readers == "anyone"
    page = as_olga.get(at("toolset", office)).text
    assert 'value="anyone" checked' in page
    assert f"/api/registry/{office.slug}</code>" in page
    assert actions() == ["toolset.registry_readers_set"]


def shown(toolset: Toolset, tool: str = "mailer.send_mail") -> str:
    return reverse("registry:shown_tool", args=[toolset.slug, tool])


def test_a_tool_gets_a_name_and_words_and_fixed_arguments(
    as_olga: Client, office: Toolset, mailer: Server
) -> None:
    office.servers.add(mailer)
    assert f'href="{shown(office)}"' in as_olga.get(at("toolset", office)).text
    said = {"name": "post", "description": "Letters.", "pinned": '{"subject": "From us"}'}

    page = as_olga.post(shown(office), said, follow=True)

    assert "Agents see “mailer.send_mail” as you said." in page.text
    told = page.context["told"]
    assert (told["name"], told["description"]) == ("post", "Letters.")
    assert "subject" not in told["inputSchema"]["properties"]
    assert ("Claude Code", "mcp__countersign__post", 22, False) in page.context["prefixed"]
    (seen,) = as_olga.get(at("toolset", office)).context["names"]
    assert (seen.name, seen.length, seen.doubled) == ("post", 4, False)
    assert actions() == ["toolset.tool_shown"]


def test_what_cannot_be_is_said_at_its_field(
    as_olga: Client, office: Toolset, mailer: Server
) -> None:
    office.servers.add(mailer)

    page = as_olga.post(shown(office), {"name": "countersign.post", "pinned": "{}"})

    assert page.status_code == 200
    assert "are ours" in page.context["form"].errors["name"][0]
    assert actions() == []


def test_only_those_who_change_toolsets_say_how_a_tool_is_shown(
    client: Client, vera: User, mallory: User, office: Toolset, mailer: Server
) -> None:
    office.servers.add(mailer)
    client.force_login(vera)
    assert 'name="pinned"' not in client.get(shown(office)).text
    assert client.post(shown(office), {"name": "post"}).status_code == 403
    client.force_login(mallory)
    assert client.get(shown(office)).status_code == 403

    assert client.post(shown(office), {"name": "post"}).status_code == 403
    assert actions() == []


@pytest.mark.long
def test_a_tool_of_another_toolset_has_no_such_page(
    as_olga: Client, office: Toolset, mailer: Server
) -> None:
    assert as_olga.get(shown(office)).status_code == 404


VERBS = [
    "set_toolset_own_tools",
    "set_toolset_servers",
    "set_toolset_agents",
    "set_toolset_title",
    "set_toolset_separator",
    "set_toolset_hold",
    "set_toolset_search_mode",
    "set_toolset_sign_in",
    "set_toolset_registry",
    "add_tools",
    "remove_tools",
]


@pytest.mark.parametrize("verb", VERBS)
def test_others_change_nothing(client: Client, vera: User, office: Toolset, verb: str) -> None:
    client.force_login(vera)

    assert client.get(at("toolset", office)).status_code == 200
    assert client.post(at(verb, office), {"title": "Mine"}).status_code == 403
    assert client.get(reverse("registry:add_toolset")).status_code == 403
    assert actions() == []


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_takes_only_a_post_with_the_forms_own_token(
    as_olga: Client, olga: User, office: Toolset, verb: str
) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(olga)

    assert as_olga.get(at(verb, office)).status_code == 405
    assert strict.post(at(verb, office)).status_code == 403


@pytest.mark.parametrize("page", ["toolset", "connect"])
def test_mallory_sees_none(client: Client, mallory: User, office: Toolset, page: str) -> None:
    client.force_login(mallory)

    assert client.get(at(page, office)).status_code == 403
    assert client.get(reverse("registry:toolsets")).status_code == 403


def test_an_unknown_toolset_is_not_found(as_olga: Client) -> None:
    assert as_olga.get(reverse("registry:toolset", args=["nothing"])).status_code == 404


def test_a_name_too_long_with_a_clients_prefix_is_marked(
    as_olga: Client, olga: User, office: Toolset
) -> None:
    long = {**scenery.ADD, "name": "x" * (64 - len("mcp__countersign__") - len("long.") + 1)}
    short = {**scenery.ADD, "name": "x" * (64 - len("mcp__countersign__") - len("long."))}
    office.servers.add(scenery.server("long", olga, long, short))

    names = as_olga.get(at("toolset", office)).context["names"]

    assert [(seen.length, seen.too_long_for) for seen in names] == [
        (46, ""),
        (47, "Claude Code, Codex"),
    ]


def test_the_list_counts_what_is_in_each(
    as_olga: Client, office: Toolset, mailer: Server, scout: Agent
) -> None:
    office.servers.add(mailer)
    office.agents.add(scout)

    page = as_olga.get(reverse("registry:toolsets"))

    assert "1 whole server, 1 agent" in page.text


def test_the_connect_page_shows_each_client_for_this_address(
    as_olga: Client, office: Toolset, settings
) -> None:
    settings.AGENT_URL = "https://tools.example.org"

    page = as_olga.get(at("connect", office)).text

    for client in ("Claude Code", "Claude Desktop", "Cursor", "VS Code", "Codex", "Gemini CLI"):
        assert client in page
    assert "https://tools.example.org/mcp/office" in page
    assert "{url}" not in page


def test_what_the_page_says_is_what_the_documentation_says() -> None:
    said = PAGE.read_text()

    for snippet in client_snippets.snippets(URL):
        assert snippet.text in said, snippet.id
    assert client_snippets.EXPORT in said


def snippet(name: str) -> client_snippets.Snippet:
    return next(one for one in client_snippets.snippets(URL) if one.id == name)


@pytest.mark.parametrize(
    ("name", "key", "server"),
    [
        (
            "claude-code-project",
            "mcpServers",
            {
                "type": "http",
                "url": URL,
                "headers": {"Authorization": "Bearer ${COUNTERSIGN_TOKEN}"},
            },
        ),
        (
            "cursor",
            "mcpServers",
            {"url": URL, "headers": {"Authorization": "Bearer ${env:COUNTERSIGN_TOKEN}"}},
        ),
        (
            "vs-code",
            "servers",
            {
                "type": "http",
                "url": URL,
                "headers": {"Authorization": "Bearer ${input:countersign-token}"},
            },
        ),
        (
            "gemini-cli",
            "mcpServers",
            {
                "httpUrl": URL,
                "headers": {"Authorization": "Bearer $COUNTERSIGN_TOKEN"},
                "timeout": 120000,
            },
        ),
        (
            "claude-desktop",
            "mcpServers",
            {
                "command": "npx",
                "args": [
                    "-y",
                    "mcp-remote",
                    URL,
                    "--transport",
                    "http-only",
                    "--header",
                    "Authorization:${AUTHORIZATION}",
                ],
                "env": {"AUTHORIZATION": "Bearer csa_…"},
            },
        ),
    ],
)
def test_json_has_the_clients_own_form(name: str, key: str, server: dict[str, object]) -> None:
    assert json.loads(snippet(name).text)[key] == {"countersign": server}


def test_codex_reads_its_toml() -> None:
    table = tomllib.loads(snippet("codex").text)["mcp_servers"]["countersign"]

    assert table["url"] == URL
    assert table["bearer_token_env_var"] == "COUNTERSIGN_TOKEN"


def test_cursor_opens_with_the_same_server_filled_in() -> None:
    link = urlsplit(snippet("cursor").link)

    assert (link.scheme, link.netloc, link.path) == (
        "cursor",
        "anysphere.cursor-deeplink",
        "/mcp/install",
    )
    given = parse_qs(link.query)
    assert given["name"] == ["countersign"]
    server = json.loads(base64.b64decode(given["config"][0]))
    assert server == json.loads(snippet("cursor").text)["mcpServers"]["countersign"]


def test_vs_code_opens_with_the_same_server_and_asks_for_the_token() -> None:
    scheme, _, config = snippet("vs-code").link.partition(":mcp/install?")
    given = json.loads(unquote(config))
    written = json.loads(snippet("vs-code").text)

    assert scheme == "vscode"
    assert given.pop("name") == "countersign"
    assert given.pop("inputs") == written["inputs"]
    assert given == written["servers"]["countersign"]
