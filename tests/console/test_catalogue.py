"""Finding tools, reading what they say of themselves, letting agents have them."""

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from audit.models import Entry
from registry.models import Server, Tool
from tests.console import scenery


@pytest.fixture
def calculator(olga: User) -> Server:
    return scenery.server("calculator", olga, scenery.ADD, publish=False)


@pytest.fixture
def add(calculator: Server) -> Tool:
    return calculator.tools.for_catalogue().get()


@pytest.fixture
def as_olga(client: Client, olga: User) -> Client:
    client.force_login(olga)
    return client


def found(client: Client, **filters: str) -> set[str]:
    page = client.get(reverse("registry:catalogue"), filters)
    return {tool.exposed_name for tool in page.context["page"].rows}


def publish(client: Client, tool: Tool, digest: str = ""):
    assert tool.latest
    data = {"digest": digest or tool.latest.digest}
    address = reverse("registry:publish", args=[tool.exposed_name])
    return client.post(address, data, follow=True)


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


def test_nothing_found_says_what_to_do(as_olga: Client, mailer: Server) -> None:
    page = as_olga.get(reverse("registry:catalogue"), {"q": "zzz"}).text

    assert "No tool fits" in page
    assert "Show every tool" in page


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
    assert "agents get it now" in page
    assert Entry.objects.filter(action="definition.published", actor="olga").exists()


def test_what_changed_since_it_was_read_is_not_published(as_olga: Client, add: Tool) -> None:
    assert add.latest
    read = add.latest.digest
    scenery.see(add.server, {**scenery.ADD, "description": "Adds, and tells others."})

    page = publish(as_olga, add, read).text

    add.refresh_from_db()
    assert add.state == Tool.State.NEW
    assert "look at it again" in page


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
    address = reverse("registry:publish", args=[add.exposed_name])

    assert as_olga.get(address).status_code == 405


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
    assert "There is nothing here" in response.text
