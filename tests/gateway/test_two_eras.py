"""A server that speaks the newest revision and an earlier one: an operator may choose."""

from dataclasses import dataclass
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from audit.models import Entry
from registry.discovery import discovery
from registry.models import Server, Toolset
from registry.upstream import NotSent, UpstreamCall
from tests.gateway.agent import LEGACY, MODERN
from tests.gateway.conftest import Play, until
from tests.upstreams.asking import Asking
from tests.upstreams.local import local_upstreams
from tests.upstreams.raw import error, legacy, modern, reply, respond, serving
from tests.upstreams.recorder import running

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class TwoEras(Asking):
    """Answers each request in the way in which it is asked."""

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        revision = dict(scope["headers"]).get(b"mcp-protocol-version", b"").decode()
        self.legacy = revision != MODERN
        await super().app(scope, receive, send)


running_recorder = running(TwoEras)


@pytest.fixture
def upstream(running_recorder: TwoEras) -> TwoEras:
    running_recorder.reset()
    return running_recorder


def spoken(upstream: TwoEras) -> str:
    return upstream.calls[-1].headers["mcp-protocol-version"]


@sync_to_async
def set_revision(revision: str) -> None:
    call_command("update_server", "rec", revision=revision)


async def look() -> None:
    server = await Server.objects.aget(slug="rec")
    (found,) = await discovery.look_at([server.pk])
    assert found.succeeded, found.summary


@pytest.mark.long
@pytest.mark.parametrize("agents", [MODERN, LEGACY[0]])
async def test_it_is_spoken_to_in_what_is_set(
    play: Play, toolset: Toolset, upstream: TwoEras, agents: str
) -> None:
    agent = play(agents)
    assert (await agent.call("rec.echo", {"text": "x"})).result["content"]
    assert spoken(upstream) == MODERN

    await set_revision(LEGACY[0])

    async def is_spoken() -> bool:
        await agent.call("rec.echo", {"text": "x"})
        return spoken(upstream) == LEGACY[0]

    await until(is_spoken)
    await look()
    server = await Server.objects.aget(slug="rec")
    assert server.revision == LEGACY[0]
    # What it named in the newest is not forgotten.
    assert server.named_revisions == [MODERN]
    entry = await Entry.objects.aget(action="server.revision_set")
    assert entry.details["revision"] == LEGACY[0]

    await set_revision("newest")
    await look()
    assert (await Server.objects.aget(slug="rec")).revision == MODERN


def test_operators_set_it_on_the_page(as_olga: Client, toolset: Toolset, upstream: TwoEras) -> None:
    choose = reverse("registry:set_server_revision", args=["rec"])

    page = as_olga.post(choose, {"revision": LEGACY[0]}, follow=True)

    # It was asked at once.
    assert f"{LEGACY[0]} ({LEGACY[0]} is set)" in " ".join(page.text.split())
    assert f"It names {MODERN}" in " ".join(page.text.split())
    edit = as_olga.get(reverse("registry:edit_server", args=["rec"]))
    assert f'value="{LEGACY[0]}" selected' in edit.text
    refused = as_olga.post(choose, {"revision": "1999-01-01"}, follow=True)
    assert "no revision that is known" in refused.text
    assert Server.objects.get(slug="rec").wanted_revision == LEGACY[0]


async def echo(request: Any, out: Any) -> None:
    if request.method == "initialize":
        respond(out, error(request, -32601), status=400)
    else:
        respond(out, reply(request))


@pytest.mark.parametrize(
    ("only", "wanted"),
    [(modern(echo), LEGACY[0]), (legacy(echo), MODERN), (legacy(echo), LEGACY[1])],
    ids=["no earlier one", "not the newest", "another earlier one"],
)
async def test_nothing_is_sent_in_another_than_is_set(only: Any, wanted: str) -> None:
    async with local_upstreams() as upstreams, serving(only) as server:
        with pytest.raises(NotSent):
            await upstreams.call_tool(server.target(wanted=wanted), UpstreamCall("t", b"{}"))

    assert server.sent("tools/call") == []
