"""What a hostile server says of itself and its tools, from the first look to every page of them."""

import json
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts import services as accounts
from accounts.models import Agent, User
from accounts.roles import Role
from approvals.models import Approval
from approvals.services import vote
from calls.models import Call
from calls.record.states import State
from registry.models import Server, Tool, Toolset
from tests.console import scenery
from tests.hostile.corpus import MEGABYTE, Hostile
from tests.hostile.pages import Page
from tests.hostile.test_hostile import LONG, SHORT, page, unseen
from tests.publishing import publish_as_read
from tests.registry.offering import Offering, serving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ann(transactional_db: None) -> User:
    return scenery.person("ann", Role.OPERATOR, Role.APPROVER, Role.AUDITOR, Role.ADMINISTRATOR)


@pytest.fixture
def console(client: Client, ann: User) -> Client:
    client.force_login(ann)
    return client


def offered(**changed: Any) -> dict[str, Any]:
    return {"name": "say", "inputSchema": {"type": "object"}, **changed}


@pytest.fixture
def offering() -> Iterator[tuple[Offering, str]]:
    made = Offering()
    with serving(made) as url:
        yield made, f"{url}/mcp"


def test_names_that_are_none_are_left_out_and_told_as_what_they_are(
    console: Client, offering: tuple[Offering, str]
) -> None:
    stranger, url = offering
    stranger.tools = [offered(name=one.text) for one in SHORT]
    stranger.info = {"name": SHORT[0].text, "version": SHORT[1].text}

    tested = console.post(
        f"{reverse('registry:register')}?by=url", {"slug": "stranger", "url": url, "test": "1"}
    )
    register(console, url)

    assert "Its name has other characters than" in tested.text
    assert unseen(Page(tested.text), SHORT) == []
    assert not Page(tested.text).wrong
    for address in ("registry:server", "registry:review"):
        page(console, reverse(address, args=["stranger"]))
    page(console, reverse("registry:catalogue"))
    for tool in Tool.objects.all():
        assert tool.exposed_name.isascii()
        page(console, reverse("registry:tool", args=[tool.exposed_name]))


def test_titles_and_descriptions_of_three_hundred_tools(
    console: Client, offering: tuple[Offering, str]
) -> None:
    stranger, url = offering
    stranger.tools = [
        offered(name=f"t{n}", title=one.text, description=one.text) for n, one in enumerate(SHORT)
    ]

    register(console, url)

    pages = range(0, len(SHORT), 100)
    review = reverse("registry:review", args=["stranger"])
    missing = [set(unseen(page(console, review, **{"from": str(n)}), SHORT)) for n in pages]
    assert set.intersection(*missing) == set()
    publish_as_read(Server.objects.get(), by=User.objects.get(username="ann"))
    assert Tool.objects.count() == len(SHORT)
    for first in range(0, len(SHORT), 50):
        page(console, reverse("registry:catalogue"), q=f"t{first}")
        page(console, reverse("registry:tool", args=[f"stranger.t{first}"]))


def register(console: Client, url: str) -> None:
    made = console.post(f"{reverse('registry:register')}?by=url", {"slug": "stranger", "url": url})
    assert made.status_code == 302


# More fields than this are no form but JSON.
AT_ONCE = 40
GROUPS = [SHORT[n : n + AT_ONCE] for n in range(0, len(SHORT), AT_ONCE)]
KINDS = ("string", "integer", "boolean", "array", "object", "null")


@pytest.fixture
def tools(console: Client, ann: User) -> list[Tool]:
    """Each with two versions, to use and to compare; every word of theirs is hostile."""
    made = scenery.server("stranger", ann, publish=False)
    for n, group in enumerate(GROUPS):
        scenery.see(made, _content(n, group[1:]))
        scenery.see(made, _content(n, group))
    publish_as_read(made, by=ann)
    return list(made.tools.for_catalogue().order_by("pk"))


def _content(number: int, chosen: list[Hostile]) -> dict[str, Any]:
    properties = {
        one.text: {"type": kind, "description": one.text, "examples": [one.text]}
        for one, kind in zip(chosen, cycle(KINDS), strict=False)
    }
    schema = {"type": "object", "properties": properties}
    among = {"among": {"enum": [one.text for one in chosen]}}
    said = "\n".join(one.text for one in chosen)
    schema["properties"] = {**properties, **among}
    return offered(name=f"t{number}", description=said, title=chosen[0].text, inputSchema=schema)


@pytest.fixture
def scout(tools: list[Tool], ann: User) -> Agent:
    """ann's own, to try tools as."""
    return _user_of(tools, "scout", ann)


@pytest.fixture
def rover(tools: list[Tool]) -> Agent:
    """Somebody else's, so that ann decides."""
    return _user_of(tools, "rover", scenery.person("bob", Role.VIEWER))


def _user_of(tools: list[Tool], name: str, owner: User) -> Agent:
    made = accounts.create_agent(name, owner=owner, by=owner)
    for tool in tools:
        scenery.offered(made, tool)
    return made


def test_every_page_of_a_tool(console: Client, tools: list[Tool], scout: Agent) -> None:
    for tool, group in zip(tools, GROUPS, strict=True):
        versions = page(console, reverse("registry:tool_versions", args=[tool.exposed_name]))
        assert unseen(versions, group[:1]) == []
        form = page(console, reverse("gateway:try", args=[tool.exposed_name]))
        assert unseen(form, group) == []
        for name in ("registry:tool_policy", "calls:usage", "calls:of_tool"):
            page(console, reverse(name, args=[tool.exposed_name]))
        page(console, reverse("policies:explain"), agent="scout", tool=tool.exposed_name)
    toolset = Toolset.objects.get()
    page(console, reverse("registry:toolset", args=[toolset.slug]))
    for one in SHORT[::10]:
        for name in ("registry:catalogue", "find", "audit:report", "policies:explain"):
            page(console, reverse(name), q=one.text, tool=one.text, agent=one.text)


def test_every_page_of_a_decision(
    console: Client, tools: list[Tool], rover: Agent, ann: User
) -> None:
    for tool, group in zip(tools, GROUPS, strict=True):
        given = {one.text: one.text for one in group}
        held = scenery.call(rover, tool, given, State.HELD)
        edit = page(console, reverse("approvals:edit", args=[held]))
        assert unseen(edit, group) == []
        said = "\n".join(one.text for one in group if "\0" not in one.text)
        console.post(reverse("approvals:say", args=[held]), {"text": said})
        approval = Approval.objects.get(pk=held)
        digest = approval.call.call_digest
        vote(approval, by=ann, approve=True, seen_digest=digest, reason=said)
        assert unseen(page(console, reverse("approvals:new_grant", args=[held])), group) == []
        page(console, reverse("calls:detail", args=[held]))
    page(console, reverse("approvals:grants"))
    page(console, reverse("approvals:freezes"))


@pytest.mark.parametrize("one", LONG, ids=[one.name for one in LONG])
def test_a_megabyte_of_a_definition_progress_and_result(
    console: Client, offering: tuple[Offering, str], tools: list[Tool], scout: Agent, one: Hostile
) -> None:
    stranger, url = offering
    stranger.tools = [offered(description=one.text), offered(name="also", title=one.text)]
    console.post(f"{reverse('registry:register')}?by=url", {"slug": "large", "url": url})
    for name in ("registry:server", "registry:review"):
        assert len(page(console, reverse(name, args=["large"])).text) < MEGABYTE

    held = scenery.call(scout, tools[0], {"n": 1}, State.QUEUED)
    scenery.run(held)
    Call.objects.filter(pk=held).update(progress=1, progress_message=one.text[:1000])
    page(console, reverse("calls:detail", args=[held]))
    result = {"content": [{"type": "text", "text": one.text}], "structuredContent": {"a": one.text}}
    scenery.finish(held, result, said=one.text[:1000])
    shown = page(console, reverse("calls:detail", args=[held]))
    assert f"{len(one.text):,}".replace(",", "") in shown.text.replace(",", "").replace(" ", "")
    whole = console.get(reverse("calls:result", args=[held]))
    assert json.loads(whole.getvalue()) == result
