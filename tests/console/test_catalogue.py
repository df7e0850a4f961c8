"""Finding tools, reading what they say of themselves, letting agents have them."""

import copy
import os
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import freezes
from audit.models import Entry
from calls.measuring import measure
from calls.record.states import State
from calls.views.usage_figures import Day
from registry.models import Listing, Server, Tag, Tool, Toolset
from registry.models.versioned import difference
from registry.views import facets
from tests.console import scenery
from tests.database import Databases


@pytest.fixture
def calculator(olga: User) -> Server:
    return scenery.server("calculator", olga, scenery.ADD, publish=False)


@pytest.fixture
def add(calculator: Server) -> Tool:
    return calculator.tools.for_catalogue().get()


def found(client: Client, **filters: str) -> set[str]:
    page = client.get(reverse("registry:catalogue"), filters)
    return {tool.exposed_name for tool in page.context["page"].rows}


def publish(client: Client, tool: Tool, digest: str = ""):
    data = {f"digest-{tool.pk}": digest or difference(tool)}
    address = reverse("registry:publish", args=[tool.exposed_name])
    return client.post(address, data, follow=True)


@pytest.mark.long
@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, {"calculator.add", "mailer.send_mail"}),
        ({"q": "SEND mail"}, {"mailer.send_mail"}),
        ({"q": "recipient"}, {"mailer.send_mail"}),
        ({"q": "subject"}, {"mailer.send_mail"}),
        ({"q": "nothing like it"}, set()),
        ({"server": "calculator"}, {"calculator.add"}),
        ({"hint": "reads"}, {"calculator.add"}),
        ({"hint": "destructive"}, {"mailer.send_mail"}),
        ({"state": "unpublished"}, {"calculator.add"}),
        ({"state": "published"}, {"mailer.send_mail"}),
        ({"state": "retired"}, set()),
        ({"server": "mailer", "hint": "reads"}, set()),
    ],
)
def test_filters_find(
    as_olga: Client, mailer: Server, add: Tool, filters: dict[str, str], names: set[str]
) -> None:
    assert found(as_olga, **filters) == names


@pytest.mark.long
@pytest.mark.parametrize("asked", ["天气", "气", "结构化天气", "构化"])
def test_a_word_within_a_name_without_spaces_is_found(
    as_olga: Client, olga: User, asked: str
) -> None:
    scenery.server("sky", olga, {**scenery.ADD, "name": "report", "title": "结构化天气"})

    assert found(as_olga, q=asked) == {"sky.report"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("asked", "tools"),
    [
        ("天气", {"sky.report", "sky.other"}),
        ("今日天气api", {"sky.other"}),
        ("结构化 天气", {"sky.report"}),
        ("气天", set()),
        ("날씨", {"sky.other"}),
        ("天氣ＡＰＩ", {"sky.other"}),
        ("結構化", {"sky.report"}),
        ("ＲＥＰＯＲＴ", {"sky.report"}),
        ("ﷺ", set()),
    ],
)
def test_chinese_is_found_in_titles_and_descriptions(
    as_olga: Client, olga: User, asked: str, tools: set[str]
) -> None:
    other = {"name": "other", "description": "查询今日天气的API。한국날씨"}
    report = {"name": "report", "title": "结构化天气"}
    scenery.server("sky", olga, {**scenery.ADD, **report}, {**scenery.ADD, **other})

    assert found(as_olga, q=asked) == tools


@pytest.mark.long
@pytest.mark.parametrize("asked", ["查詢", "查询", "ＡＢＣ", "abc"])
def test_traditional_characters_and_wide_letters_are_indexed_as_the_usual_ones(
    as_olga: Client, olga: User, asked: str
) -> None:
    report = {"name": "report", "title": "ＡＢＣ", "description": "查詢報表"}
    scenery.server("sky", olga, {**scenery.ADD, **report}, {**scenery.ADD, "name": "other"})

    assert found(as_olga, q=asked) == {"sky.report"}


@pytest.mark.long
def test_what_was_indexed_in_traditional_characters_before_is_found_by_them(
    as_olga: Client, olga: User
) -> None:
    scenery.server("sky", olga, {**scenery.ADD, "name": "report"})
    Listing.objects.update(bigrams=["查", "查詢", "詢"])

    assert found(as_olga, q="查詢") == {"sky.report"}


def test_nothing_found_says_what_to_do(as_olga: Client, mailer: Server) -> None:
    page = as_olga.get(reverse("registry:catalogue"), {"q": "zzz"}).text

    assert "No tool fits" in page
    assert "Show every tool" in page


@pytest.mark.long
def test_pages_go_on_where_the_last_one_ended_and_back(as_olga: Client, olga: User) -> None:
    tools = [{**scenery.ADD, "name": f"tool_{n:03}"} for n in range(120)]
    scenery.server("many", olga, *tools)
    address = reverse("registry:catalogue")

    first = as_olga.get(address).context["page"]
    second = as_olga.get(address, {"beyond": first.next}).context["page"]
    third = as_olga.get(address, {"beyond": second.next}).context["page"]
    back = as_olga.get(address, {"back": second.previous}).context["page"]

    names = [tool.name for page in (first, second, third) for tool in page.rows]
    assert names == [tool["name"] for tool in tools]
    assert not third.next
    assert [tool.name for tool in back.rows] == [tool.name for tool in first.rows]
    assert not back.previous


def test_a_pages_key_is_dropped_when_a_filter_changes(as_olga: Client, mailer: Server) -> None:
    page = as_olga.get(reverse("calls:list"), {"beyond": "nonsense", "state": "live"})

    assert page.status_code == 200


def test_a_tools_page_shows_its_arguments_as_a_table(as_olga: Client, send_mail: Tool) -> None:
    page = as_olga.get(reverse("registry:tool", args=["mailer.send_mail"]))

    rows = {row.name: row for row in page.context["arguments"]}
    assert rows["to"].type == "array of string"
    assert rows["to"].required
    assert rows["to"].constraints == ["items ≥ 1"]
    assert rows["subject"].constraints == ["length ≤ 200"]
    assert rows["priority"].depth == 1
    assert rows["priority"].constraints == ["one of low, normal, high"]
    assert rows["copies"].default == 1
    assert "Who gets it." in page.text
    assert "The recipient sees it at once." in page.text


def test_a_schema_that_refers_to_itself_ends(as_olga: Client, olga: User) -> None:
    tree = {"properties": {"left": {"$ref": "#/$defs/node"}, "right": {"$ref": "#/$defs/node"}}}
    schema = {"type": "object", "$defs": {"node": tree}, "properties": {"top": tree}}
    calculator = scenery.server("trees", olga, publish=False)
    scenery.see(calculator, {"name": "grow", "inputSchema": schema})

    page = as_olga.get(reverse("registry:tool", args=["trees.grow"]))

    assert page.status_code == 200
    assert 1 < len(page.context["arguments"]) <= 300


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": "none"},
        {"properties": {"a": True, "b": None, "c": {"type": ["string", "null"]}}},
        {"properties": {"a": {"enum": []}, "b": {"$ref": "#/nowhere"}, "c": {"anyOf": [1]}}},
        {"required": "a", "properties": {"a": {"items": [1, 2], "type": "array"}}},
    ],
)
def test_an_odd_schema_is_still_shown(as_olga: Client, olga: User, schema: object) -> None:
    odd = scenery.server("odd", olga, publish=False)
    scenery.see(odd, {"name": "odd", "inputSchema": schema})

    assert as_olga.get(reverse("registry:tool", args=["odd.odd"])).status_code == 200


def test_hidden_characters_of_a_definition_are_shown_and_counted(
    as_olga: Client, olga: User
) -> None:
    server = scenery.server("words", olga, publish=False)
    scenery.see(server, {**scenery.ADD, "description": "Adds.\u200b\u200b\u202e"})

    page = as_olga.get(reverse("registry:tool", args=["words.add"])).text

    assert "This definition holds 3 characters" in page
    assert "⟦U+202E⟧" in page
    assert "\u202e" not in page
    assert "\u200b" not in page


def test_an_operator_publishes_what_they_read(as_olga: Client, add: Tool) -> None:
    page = publish(as_olga, add).text

    add.refresh_from_db()
    assert add.state == Tool.State.PUBLISHED
    assert "Published: 1. No agent gets it: no toolset of an agent has it." in page
    assert Entry.objects.filter(action="definition.published", actor="olga").exists()


def test_what_changed_since_it_was_read_is_not_published(as_olga: Client, add: Tool) -> None:
    read = difference(add)
    scenery.see(add.server, {**scenery.ADD, "description": "Adds, and tells others."})

    page = publish(as_olga, add, read).text

    add.refresh_from_db()
    assert add.state == Tool.State.NEW
    assert "look at it again" in page


@pytest.mark.long
def test_publishing_twice_says_so(as_olga: Client, add: Tool) -> None:
    publish(as_olga, add)

    assert "is published already" in publish(as_olga, add).text


@pytest.mark.parametrize("name", ["alice", "vera", "ines", "mallory"])
def test_only_operators_publish(
    client: Client, request: pytest.FixtureRequest, add: Tool, name: str
) -> None:
    client.force_login(request.getfixturevalue(name))

    assert publish(client, add).status_code == 403
    add.refresh_from_db()
    assert add.state == Tool.State.NEW


def test_publishing_is_never_a_link(as_olga: Client, add: Tool) -> None:
    as_olga.get(reverse("registry:publish", args=[add.exposed_name]))

    add.refresh_from_db()
    assert add.state == Tool.State.NEW


def test_a_viewer_is_shown_no_address_and_no_button(client: Client, vera: User, add: Tool) -> None:
    client.force_login(vera)

    server = client.get(reverse("registry:server", args=["calculator"])).text
    tool = client.get(reverse("registry:tool", args=["calculator.add"])).text

    assert "127.0.0.1:9" not in server
    assert reverse("registry:publish", args=["calculator.add"]) not in tool


@pytest.mark.parametrize(
    "address", ["/tools/no.such/", "/servers/none/", "/tools/calculator.add/?version=9"]
)
def test_what_is_not_there_is_not_found(as_olga: Client, add: Tool, address: str) -> None:
    response = as_olga.get(address)

    assert response.status_code == 404
    assert "Page not found" in response.text


@pytest.mark.long
@pytest.mark.parametrize("typed", ["sned_mail", "recipent mail", "subjct", "proirity", "mial send"])
def test_a_mistyped_word_finds_what_is_nearly_called_so(
    as_olga: Client, mailer: Server, add: Tool, typed: str
) -> None:
    page = as_olga.get(reverse("registry:catalogue"), {"q": typed})

    near = {tool.exposed_name for tool in page.context["close"]}
    assert "mailer.send_mail" in near | found(as_olga, q=typed)


def test_the_best_fit_stands_first(as_olga: Client, olga: User) -> None:
    said = {**scenery.ADD, "name": "a_first", "description": "Not for mail. Mail is elsewhere."}
    scenery.server("zoo", olga, said, {**scenery.ADD, "name": "mail"})

    page = as_olga.get(reverse("registry:catalogue"), {"q": "mail"}).context["page"]

    assert [tool.exposed_name for tool in page.rows] == ["zoo.mail", "zoo.a_first"]


@pytest.mark.long
def test_pages_of_a_search_follow_one_another(as_olga: Client, olga: User) -> None:
    scenery.server("many", olga, *[{**scenery.ADD, "name": f"sum_{n:03}"} for n in range(60)])
    address = reverse("registry:catalogue")

    first = as_olga.get(address, {"q": "sum"}).context["page"]
    second = as_olga.get(address, {"q": "sum", "beyond": first.next}).context["page"]

    names = {tool.exposed_name for page in (first, second) for tool in page.rows}
    assert len(names) == 60


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"risk": "destroys"}, {"mailer.send_mail"}),
        ({"risk": "reads"}, {"calculator.add"}),
        ({"risk": "made up"}, {"calculator.add", "mailer.send_mail"}),
        ({"owner": "olga"}, {"calculator.add", "mailer.send_mail"}),
        ({"owner": "bob"}, set()),
        ({"used": "no"}, {"calculator.add", "mailer.send_mail"}),
        ({"used": "yes"}, set()),
        ({"tag": "office"}, set()),
        ({"q": "mail", "risk": "reads"}, set()),
        ({"q": "' OR 1=1 --:*&|!("}, set()),
        ({"q": "the"}, {"calculator.add", "mailer.send_mail"}),
    ],
)
def test_facets_narrow(
    as_olga: Client, mailer: Server, add: Tool, filters: dict[str, str], names: set[str]
) -> None:
    assert found(as_olga, **filters) == names


def counts(client: Client, **filters: str) -> dict[tuple[str, str], int | None]:
    facets = client.get(reverse("registry:catalogue"), filters).context["facets"]
    return {(one.name, choice.value): choice.count for one in facets for choice in one.choices}


@pytest.mark.long
def test_facets_count_what_each_choice_leaves(as_olga: Client, olga: User, add: Tool) -> None:
    mailer = scenery.server("mailer", olga, scenery.SEND, {**scenery.ADD, "name": "sum"})
    office = Toolset.objects.create(slug="office")
    office.servers.add(mailer)
    office.tools.add(mailer.tools.get(name="sum"), add)
    Toolset.objects.create(slug="empty")
    server = add.server.slug

    every = counts(as_olga)
    assert every["server", "mailer"] == 2
    assert every["server", server] == 1
    assert every["toolset", "office"] == 3
    assert every["toolset", "empty"] == 0
    assert every["risk", "reads"] == 2
    assert every["owner", "olga"] == 3
    assert every["hint", "open"] == 1
    assert ("used", "no") not in every
    add.used_on = timezone.now().date()
    add.save(update_fields=["used_on"])
    every = counts(as_olga)
    assert (every["used", "yes"], every["used", "no"]) == (1, 2)
    # Its own facet goes on to say what its other choices would leave.
    of_mailer = counts(as_olga, server="mailer")
    assert (of_mailer["server", server], of_mailer["risk", "reads"]) == (1, 1)
    assert of_mailer["toolset", "office"] == 2
    found = counts(as_olga, q="numbers", toolset="office")
    assert (found["server", "mailer"], found["server", server]) == (1, 1)
    assert counts(as_olga, q="nothing like it")["server", "mailer"] == 0

    page = as_olga.get(reverse("registry:catalogue"), {"toolset": "office", "server": "mailer"})
    assert [tool.name for tool in page.context["page"].rows] == ["send_mail", "sum"]
    assert page.text.count("toolsets: office") == 2
    assert "Owner olga&nbsp;· no use measured yet" in page.text


@pytest.mark.long
def test_each_filter_leaves_as_many_tools_as_its_facet_counts(
    as_olga: Client, olga: User, add: Tool
) -> None:
    """With every pair of filters: counted is what is found."""
    mailer = scenery.server("mailer", olga, scenery.SEND, {**scenery.ADD, "name": "sum"})
    scenery.server("library", scenery.person("otto"), {**scenery.ADD, "name": "resources/read"})
    office = Toolset.objects.create(slug="office")
    office.servers.add(mailer)
    office.tools.add(mailer.tools.get(name="sum"), add)
    Tag.objects.create(name="daily").tools.add(add, mailer.tools.get(name="sum"))
    Tool.objects.filter(name="sum").update(used_on=timezone.now().date())
    mailer.tools.filter(name="send_mail").update(state="retired")

    chosen = {"server": "mailer", "owner": "olga", "toolset": "office", "tag": "daily"}
    chosen |= {"risk": "reads", "state": "published", "used": "yes", "kind": "tool"}
    for name, value in {"": "", **chosen}.items():
        filters = {name: value} if name else {}
        for (facet, choice), n in counts(as_olga, **filters).items():
            left = found(as_olga, **{**filters, facet: choice})
            assert n == len(left), (filters, facet, choice)


@pytest.mark.long
def test_methods_of_resources_are_apart_from_tools(as_olga: Client, olga: User) -> None:
    read = {**scenery.ADD, "name": "resources/read"}
    scenery.server("library", olga, read, {**scenery.ADD, "name": "sum"})
    address = reverse("registry:catalogue")

    page = as_olga.get(address).text
    assert page.index("library.sum") < page.index("Resources and prompts</p>")
    assert page.index("Resources and prompts</p>") < page.index(">library.resources/read<")
    assert counts(as_olga)["kind", "method"] == 1
    assert found(as_olga, kind="method") == {"library.resources/read"}
    assert found(as_olga, kind="tool") == {"library.sum"}
    only = as_olga.get(address, {"kind": "tool"}).text
    assert "Resources and prompts</p>" not in only


@pytest.fixture
def many_servers(olga: User) -> list[str]:
    servers = [
        Server(slug=f"shop-{n}", transport="http", url="https://shop.example/mcp", owner=olga)
        for n in range(facets.WHOLE_MAX + 10)
    ]
    return [server.slug for server in Server.objects.bulk_create(servers)]


def facet_of(client: Client, **filters: str) -> facets.Facet:
    page = client.get(reverse("registry:catalogue"), {"all": "", **filters})
    found: facets.Facet = next(one for one in page.context["facets"] if one.name == "server")
    return found


@pytest.mark.long
def test_a_facet_shows_its_most_frequent_choices(
    as_olga: Client, many_servers: list[str], send_mail: Tool, add: Tool
) -> None:
    facet = facet_of(as_olga)
    assert len(facet.choices) == facets.SHOWN
    assert {choice.value for choice in facet.choices[:2]} == {"mailer", "calculator"}
    assert f"Show all {len(many_servers) + 2}" in as_olga.get(reverse("registry:catalogue")).text

    # The chosen one too, however few tools it has.
    facet = facet_of(as_olga, server="shop-99")
    assert facet.chosen in facet.choices
    assert len(facet.choices) == facets.SHOWN


@pytest.mark.long
def test_all_choices_of_a_facet_are_searched(
    as_olga: Client, many_servers: list[str], send_mail: Tool
) -> None:
    whole = facet_of(as_olga, all="server")
    assert len(whole.choices) == facets.WHOLE_MAX
    asked = {"all": "server", "q": "mail", "risk": "destroys"}
    page = as_olga.get(reverse("registry:catalogue"), asked).text
    assert "Search to find others." in page
    assert '<input type="hidden" name="risk" value="destroys">' in page

    assert [one.value for one in facet_of(as_olga, all="server", within=" MAIL").choices] == [
        "mailer"
    ]
    none = as_olga.get(reverse("registry:catalogue"), {"all": "server", "within": "zzz"}).text
    assert "Nothing found" in none


def test_toolsets_are_for_those_who_may_see_them(client: Client, mallory: User, add: Tool) -> None:
    Toolset.objects.create(slug="office").tools.add(add)
    mallory.user_permissions.add(Permission.objects.get(codename="view_tool"))
    client.force_login(mallory)

    page = client.get(reverse("registry:catalogue"), {"toolset": "none"})

    assert page.status_code == 200
    assert "office" not in page.text
    assert [tool.pk for tool in page.context["page"].rows] == [add.pk]


def test_states_are_called_in_filters_as_everywhere(as_olga: Client, mailer: Server) -> None:
    page = as_olga.get(reverse("registry:catalogue")).text

    for state in Tool.State:
        assert re.search(rf'state={state}"[^>]*>\s*{state.label}\s*<', page), state
    # What it is a filter for is both of those that no agent has yet.
    assert "Needs review" in page


@pytest.mark.long
def test_what_was_used_lately_is_found(
    as_olga: Client, scout: Agent, send_mail: Tool, add: Tool
) -> None:
    used = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
    scenery.run(used)
    scenery.finish(used, {"content": []})

    measure()

    assert found(as_olga, used="yes") == {"mailer.send_mail"}
    assert found(as_olga, used="no") == {"calculator.add"}


def test_facets_are_links_that_keep_the_others(as_olga: Client, mailer: Server) -> None:
    page = as_olga.get(reverse("registry:catalogue"), {"q": "mail", "risk": "destroys"}).text

    assert '?q=mail&amp;risk=destroys&amp;server=mailer"' in page
    assert '?q=mail"' in page


@pytest.mark.long
def test_a_tool_is_found_by_its_tag_until_it_is_taken_away(
    as_olga: Client, send_mail: Tool
) -> None:
    address = reverse("registry:tag_tool", args=["mailer.send_mail"])

    as_olga.post(address, {"tags": "Office, post"})
    assert found(as_olga, tag="office") == {"mailer.send_mail"}
    as_olga.post(address, {"tags": ""})

    assert not Tag.objects.exists()
    said = list(Entry.objects.filter(action="tool.tagged").values_list("details", flat=True))
    assert [entry["tags"] for entry in said] == [[], ["office", "post"]]


def test_operators_say_how_a_tools_calls_are_handled(as_olga: Client, mailer: Server) -> None:
    page = reverse("registry:tool", args=["mailer.send_mail"])
    address = reverse("registry:set_handling", args=["mailer.send_mail"])
    assert "Block until resolved" in as_olga.get(page).text

    given = {"mode": "background", "timeout_s": "30", "repeats": "guard"}
    said = as_olga.post(address, given, follow=True).text

    tool = mailer.tools.get()
    assert (tool.mode, tool.timeout_s, tool.repeats) == ("background", 30, "guard")
    assert tool.safe_to_repeat is False
    assert "<dd>Block</dd>" in said
    entry = Entry.objects.get(action="tool.handling_set")
    assert (entry.actor, entry.details["repeats"]) == ("olga", "guard")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"timeout_s": "0"}, "1 to 86400 seconds"), ({"repeats": "x"}, "not one of the available")],
)
def test_a_handling_that_cannot_be_is_said(
    as_olga: Client, mailer: Server, wrong: dict[str, str], said: str
) -> None:
    address = reverse("registry:set_handling", args=["mailer.send_mail"])
    given = {"mode": "auto", "timeout_s": "30", "repeats": "auto", **wrong}

    assert said in as_olga.post(address, given, follow=True).text

    assert not Entry.objects.filter(action="tool.handling_set").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("form", "given", "said", "kept"),
    [
        (
            "set_handling",
            {"mode": "background", "timeout_s": "90000", "repeats": "guard"},
            "1 to 86400 seconds",
            ('value="90000"', '<option value="background" selected>'),
        ),
        (
            "set_results",
            {"result_patterns": "mine: (", "result_hosts": "a.org", "result_secrets": "on"},
            "cannot be used",
            ("mine: (</textarea>", 'value="a.org"', 'id="id_result_secrets" checked'),
        ),
        (
            "set_labels",
            {"label_untrusted": "no", "label_sink": "perhaps"},
            "is not one of the available",
            ('<option value="no" selected>',),
        ),
    ],
)
def test_a_form_that_cannot_be_saved_comes_back_open_and_as_it_was_sent(
    as_olga: Client,
    mailer: Server,
    form: str,
    given: dict[str, str],
    said: str,
    kept: tuple[str, ...],
) -> None:
    address = reverse("registry:tool", args=["mailer.send_mail"])
    there = reverse(f"registry:{form}", args=["mailer.send_mail"])

    page = as_olga.post(there, given).text

    (shown,) = [part for part in page.split("<details open")[1:] if there in part]
    shown = shown.split("</details>")[0]
    assert said in shown
    assert all(one in shown for one in kept)
    # A choice of theme or language comes back to the page.
    assert f'name="next" value="{address}"' in page
    assert f'value="{there}"' not in page
    assert not Entry.objects.filter(action__endswith="_set").exists()
    assert "<details open" not in as_olga.get(address).text


@pytest.mark.long
def test_others_do_not_say_how_calls_are_handled(
    client: Client, vera: User, mailer: Server
) -> None:
    client.force_login(vera)
    address = reverse("registry:set_handling", args=["mailer.send_mail"])

    assert (
        "Save the handling"
        not in client.get(reverse("registry:tool", args=["mailer.send_mail"])).text
    )
    assert client.post(address, {"mode": "auto"}).status_code == 403


@pytest.mark.long
@pytest.mark.parametrize("tags", ["no/slashes", "x" * 33, " ".join(f"t{n}" for n in range(13))])
def test_an_odd_tag_is_refused_in_words(as_olga: Client, send_mail: Tool, tags: str) -> None:
    address = reverse("registry:tag_tool", args=["mailer.send_mail"])

    page = as_olga.post(address, {"tags": tags}, follow=True).text

    assert "is no tag" in page or "at most 12 tags" in page
    assert not Tag.objects.exists()


def test_only_operators_tag(client: Client, vera: User, send_mail: Tool) -> None:
    client.force_login(vera)

    address = reverse("registry:tag_tool", args=["mailer.send_mail"])
    assert client.post(address, {"tags": "mine"}).status_code == 403
    assert client.get(address).status_code == 405


@pytest.mark.long
def test_what_changed_between_versions_is_said_part_by_part(
    as_olga: Client, mailer: Server
) -> None:
    changed: dict[str, Any] = copy.deepcopy(scenery.SEND)
    changed["inputSchema"]["properties"]["bcc"] = {"type": "string"}
    del changed["inputSchema"]["properties"]["options"]
    changed["annotations"]["readOnlyHint"] = True
    scenery.see(mailer, {**changed, "description": "Sends.\u200b"})

    page = as_olga.get(reverse("registry:tool_versions", args=["mailer.send_mail"]))

    kinds = {(change.name, change.kind) for change in page.context["changes"]}
    assert {("bcc", "added"), ("options", "removed"), ("options.priority", "removed")} <= kinds
    assert {("", "changed"), ("readOnlyHint", "changed")} <= kinds
    assert "⟦U+200B⟧" in page.text
    assert "\u200b" not in page.text


@pytest.mark.long
def test_any_two_versions_are_compared(as_olga: Client, mailer: Server) -> None:
    for text in ("Two.", "Three."):
        scenery.see(mailer, {**scenery.SEND, "description": text})
    address = reverse("registry:tool_versions", args=["mailer.send_mail"])

    page = as_olga.get(address, {"from": "3", "to": "1"})

    assert (page.context["before"].version, page.context["after"].version) == (3, 1)
    assert as_olga.get(address, {"to": "9"}).status_code == 404


def test_servers_that_cannot_be_reached_stand_first(as_olga: Client, mailer: Server) -> None:
    scenery.server("zebra", mailer.owner)
    Server.objects.filter(slug="mailer").update(health="ok")
    Server.objects.filter(slug="zebra").update(health="down", health_reason="It hung up.")

    page = as_olga.get(reverse("registry:servers"))

    assert [server.slug for server in page.context["servers"]] == ["zebra", "mailer"]
    assert "It hung up." in page.text


SUSPENDED = 'data-state="suspended"'
LISTS = ("registry:servers", "accounts:agents")


@pytest.mark.long
@pytest.mark.parametrize("everything", [True, False])
def test_a_suspended_server_and_agent_say_so_first(
    client: Client, mailer: Server, scout: Agent, everything: bool
) -> None:
    ada = scenery.person("ada", Role.ADMINISTRATOR)
    client.force_login(ada)
    Server.objects.update(health="ok")
    scenery.server("zebra", mailer.owner)
    Agent.objects.create(name="raven", owner=scout.owner)
    if everything:
        freezes.begin(by=ada, reason="A leak.")
    else:
        freezes.begin(by=ada, reason="A leak.", server=mailer)
        freezes.begin(by=ada, reason="A leak.", agent=scout)

    servers, agents = (client.get(reverse(name)).text for name in LISTS)

    assert servers.count(SUSPENDED) == agents.count(SUSPENDED) == (2 if everything else 1)
    for address in ("/servers/mailer/", "/agents/scout/"):
        assert SUSPENDED in client.get(address).text
    assert servers.index(SUSPENDED) < servers.index("Reachable")


@pytest.mark.django_db(transaction=True)
def test_usage_counts_and_measures(
    as_olga: Client, scout: Agent, send_mail: Tool, databases: Databases
) -> None:
    for seconds, state in ((1, State.SUCCEEDED), (3, State.TOOL_ERROR)):
        call = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
        scenery.run(call)
        scenery.finish(call, {"content": []}, state)
        with databases.superuser(os.environ) as past:
            past.execute("SET session_replication_role = replica")
            lasted = "UPDATE calls_call SET finished_at = sent_at + %s WHERE id = %s"
            past.execute(lasted, [timedelta(seconds=seconds), call])

    page = as_olga.get(reverse("calls:usage", args=["mailer.send_mail"]))

    usage = page.context["usage"]
    assert (usage.calls, usage.ended, usage.wrong, usage.p50) == (2, 2, 1, 2.0)
    assert usage.days[-1].calls == 2
    assert "1 of 2 ended" in page.text
    assert "2 calls; errors: 1 of 2 ended" in page.text
    # A call that has not ended is no error.
    assert Day(usage.days[-1].day, 4, 4, 1, 1, None, None).error_share == 0.25
    # A line of one day alone has two ends, else nothing would be seen of it.
    assert [len(points.split()) for points in page.context["p50"]] == [2]
    assert usage.callers == [("scout", 2)]
    assert "<svg" in page.text
    assert "50%" in page.text


def test_a_tool_that_nobody_used_says_so(as_olga: Client, send_mail: Tool) -> None:
    assert "Not used in 30 days" in as_olga.get(reverse("calls:usage", args=[send_mail])).text
    assert "No calls yet" in as_olga.get(reverse("calls:of_tool", args=[send_mail])).text


def test_a_servers_recent_errors_are_listed(
    as_olga: Client, scout: Agent, send_mail: Tool, mailer: Server
) -> None:
    wrong = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
    scenery.run(wrong)
    scenery.finish(wrong, {"content": []}, State.FAILED, "The server hung up.")

    page = as_olga.get(reverse("calls:trouble", args=["mailer"]))

    assert [call.pk for call in page.context["calls"]] == [wrong]
    assert "The server hung up." in page.text


@pytest.mark.long
@pytest.mark.parametrize("name", ["calls:usage", "calls:of_tool", "registry:tool_versions"])
def test_whoever_may_see_nothing_sees_no_tab(
    client: Client, mallory: User, send_mail: Tool, name: str
) -> None:
    client.force_login(mallory)

    assert client.get(reverse(name, args=["mailer.send_mail"])).status_code == 403


def test_tools_stand_under_their_servers(as_olga: Client, add: Tool, send_mail: Tool) -> None:
    page = as_olga.get(reverse("registry:catalogue"), {"group": "server"}).text

    first = page.index('<h3 class="line">')
    assert page.index("mailer</", first) < page.index("mailer.send_mail", first)
    assert '<input type="hidden" name="group" value="server">' in page


@pytest.mark.long
def test_before_the_first_measuring_nothing_is_said_of_use(as_olga: Client, add: Tool) -> None:
    page = as_olga.get(reverse("registry:catalogue"))

    assert "no use measured yet" not in page.text
    assert "Not used" not in page.text
    assert "Not used" in as_olga.get(reverse("registry:catalogue"), {"used": "no"}).text


@pytest.mark.long
def test_the_notice_counts_changed_tools_as_the_facet_does(
    as_olga: Client, mailer: Server, add: Tool
) -> None:
    Tool.objects.filter(name="send_mail").update(state=Tool.State.CHANGED)

    page = as_olga.get(reverse("registry:catalogue"))

    assert "2 tools need review" in page.text
    assert page.context["unpublished"] == counts(as_olga)["state", "unpublished"] == 2
