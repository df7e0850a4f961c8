"""Every secret of a run with all ways to sign in, looked for wherever one could be seen.

In the logs and the command lines of all processes, on pages, in a dump of the database, in entries
and in answers to what went wrong.
"""

import asyncio
import base64
import json
import logging
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from accounts import services as accounts
from accounts.agent_sign_in import clients
from accounts.agent_sign_in.clients import DEVICE_GRANT
from accounts.models import Agent as AgentRow
from accounts.models import AgentToken, Identity, User
from accounts.roles import Role
from accounts.workloads import identities
from audit.models import Entry
from audit.services import record
from calls.models import Call
from config import pgtools
from core.request_rate import RequestRate
from gateway.views.agent_sign_in import devices
from registry import services
from registry.discovery import discovery
from registry.models import Server, ServerCredential, Toolset
from tests.accounts import fake_provider
from tests.conftest import person
from tests.gateway.agent import Agent
from tests.gateway.client_documents import DocumentHost
from tests.gateway.test_agent_sign_in import BACK, VERIFIER, Browser, later
from tests.gateway.test_device_sign_in import Device
from tests.gateway.test_id_jag import HIS_ACCOUNT, enterprise_client
from tests.gateway.test_signing_clients import KEY as CLIENT_KEY
from tests.gateway.test_workloads import KEY, claims_of, private_pem, signed, token
from tests.processes import Stack
from tests.signing_in import connect, set_up
from tests.upstreams.guarded import Guarded

pytestmark = pytest.mark.django_db(transaction=True)

OTHER = "/mcp/desk/rec"
PAGES = (
    "/agents/", "/agents/scout/", "/agents/bob-registered-desk-app/", "/agents/bob-build-box/",
    "/agent-sign-ins/", "/toolsets/desk/", "/servers/", "/servers/acme/", "/calls/", "/audit/",
    "/people/", "/overview/",
)  # fmt: skip


@dataclass
class Run:
    """The secrets that a run made, by where they come from, and the answers to what went wrong."""

    secrets: dict[str, str] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)

    def keep(self, name: str, text: str) -> str:
        """Of those that are looked for; each is long enough to be found by chance nowhere."""
        assert len(text) >= 9, text
        self.secrets[f"{name} {len(self.secrets)}"] = text
        return text

    def keep_tokens(self, name: str, said: dict[str, Any]) -> dict[str, Any]:
        for kind in ("access_token", "refresh_token", "device_code", "user_code"):
            if kind in said:
                self.keep(f"{kind} of {name}", said[kind])
        return said

    def wrong(self, answer: Any) -> None:
        assert answer.status_code >= 400, answer.content
        self.answers.append(answer.content.decode())


def forms_of(secret: str) -> Iterator[bytes]:
    """As it is, in a URL, and as columns and documents have bytes."""
    plain = secret.encode()
    yield plain
    yield quote(secret, safe="").encode()
    yield json.dumps(secret)[1:-1].encode()
    yield plain.hex().encode()
    yield base64.b64encode(plain).rstrip(b"=")[:-1]
    yield base64.urlsafe_b64encode(plain).rstrip(b"=")[:-1]


def found_in(run: Run, place: str, content: bytes) -> list[str]:
    return [
        f"{name} in {place}"
        for name, secret in run.secrets.items()
        if any(form in content for form in forms_of(secret))
    ]


@pytest.fixture
def gateway(own_stack: Stack, toolset: Toolset, bob: User, settings: Any) -> Stack:
    services.set_agent_sign_in(toolset, True, by=bob)
    settings.PUBLIC_URL, settings.AGENT_URL = own_stack.web_url, own_stack.agents_url
    assert own_stack.agents
    assert own_stack.web
    assert own_stack.worker
    return own_stack


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(devices, "STARTS", RequestRate(100, 3600))
    return Run()


def users_client(run: Run, bob: User, here: str) -> str:
    """Signs in by the page, refreshes, and does everything wrong; returns an access token."""
    app = clients.register({"client_name": "Desk app", "redirect_uris": [BACK]})
    browser = Browser(bob, app, here)
    state = run.keep("state", "st4te-of-the-client-0815")
    run.keep("verifier", VERIFIER)
    code = run.keep("code", browser.allowed(state=state)["code"])
    given = run.keep_tokens("a user's client", browser.redeem(code).json())
    renewed = run.keep_tokens("the client", browser.refresh(given["refresh_token"]).json())
    run.keep_tokens("the client again", browser.refresh(given["refresh_token"]).json())
    for changed in ({"client_id": "csr_other"}, {"resource": f"{here}/other"}):
        unused = run.keep("unused code", browser.allowed()["code"])
        run.wrong(browser.redeem(unused, **changed))
        run.wrong(browser.redeem(unused))
    run.wrong(browser.refresh(renewed["refresh_token"], resource=f"{here}/other"))
    run.wrong(browser.page(redirect_uri=f"{BACK}/other", state=state))
    stolen = run.keep_tokens("another sign-in", browser.sign_in())
    run.keep_tokens("its successor", browser.refresh(stolen["refresh_token"]).json())
    later()
    run.wrong(browser.refresh(stolen["refresh_token"]))
    return str(renewed["access_token"])


def device(run: Run, bob: User, here: str) -> str:
    box = clients.register({"client_name": "Build box", "grant_types": [DEVICE_GRANT]})
    box_device = Device(bob, box.client_id, here)
    said = run.keep_tokens("the device", box_device.start())
    run.wrong(box_device.poll(said["device_code"]))
    run.wrong(box_device.poll(said["device_code"], client_id="csr_other"))
    run.wrong(box_device.typed("BCDF-BCDF"))
    box_device.press(box_device.typed(said["user_code"]))
    given = run.keep_tokens("the device", box_device.poll(said["device_code"]).json())
    return str(given["access_token"])


def program(run: Run, scout: AgentRow, by: User, here: str, issuer: str) -> str:
    """With a key of its own."""
    bound = identities.bind_key(scout, issuer=issuer, keys=KEY.public_pem.decode(), by=by)
    run.keep("private key", private_pem(KEY.private).splitlines()[3])
    assertion = run.keep("assertion", signed(claims_of(bound, issuer)))
    given = run.keep_tokens("the program", token(assertion, here).json())
    run.wrong(token(assertion, here))
    late = run.keep("late assertion", signed(claims_of(bound, issuer, exp=1)))
    run.wrong(token(late, here))
    return str(given["access_token"])


def enterprise(run: Run, bob: User, here: str, settings: Any) -> str:
    """A client that bob's company lets act for him."""
    settings.CLIENT_NETWORKS = ["127.0.0.0/8"]
    with fake_provider.running() as provider, DocumentHost() as documents:
        documents.answers["/jwks.json"] = {"keys": [CLIENT_KEY.public]}
        Identity.objects.create(person=bob, issuer=provider.issuer, subject=HIS_ACCOUNT)
        client = enterprise_client(provider, documents, here, settings)
        id_jag = run.keep("ID-JAG", client.id_jag())
        given = run.keep_tokens("his company's client", client.ask(id_jag).json())
        run.wrong(client.ask(id_jag))
        run.wrong(client.ask(run.keep("ID-JAG of another", client.id_jag(sub="00u-other"))))
        run.wrong(client.ask(run.keep("spoiled ID-JAG", f"{client.id_jag()[:-6]}AAAAAA")))
    return str(given["access_token"])


def server_with_sign_in(guarded: Guarded, toolset: Toolset, bob: User) -> None:
    server = services.register(
        "acme", transport="http", url=guarded.url, owner=bob, by=bob, publish=True
    )
    services.add_server(toolset, server, by=bob)
    set_up(server, Server.SignIn.PERSON, by=bob)
    connect(bob, "acme")
    (found,) = asyncio.run(discovery.look_at([server.pk]))
    assert found.succeeded, found.summary


def keep_servers(run: Run, guarded: Guarded) -> None:
    for text in (*guarded.access, *guarded.refresh):
        run.keep("a server's token", text)
    for form in guarded.grants:
        for name in ("code_verifier", "client_secret"):
            if name in form:
                run.keep(f"{name} towards a server", form[name])


async def calls(run: Run, gateway: Stack, http: aiohttp.ClientSession, shown: list[str]) -> None:
    """Each token calls at its address, and at another one; then spoiled."""
    for text in shown:
        there = Agent(http, f"{gateway.agents_url}/mcp/desk", text)
        assert (await there.call("rec.echo", {"text": "hello"})).status == 200
        other = Agent(http, f"{gateway.agents_url}{OTHER}", text)
        for agent in (other, Agent(http, there.url, f"{text[:-1]}-")):
            reply = await agent.ask("tools/list")
            run.answers.append(reply.body.decode() + str(reply.headers))


def pages(reader: User) -> Iterator[tuple[str, bytes]]:
    console = Client()
    console.force_login(reader)
    places = [*PAGES, *(f"/calls/{call.pk}/" for call in Call.objects.all()[:20])]
    places += [f"/audit/{entry.pk}/" for entry in Entry.objects.order_by("-pk")[:60]]
    for place in places:
        answer = console.get(place, follow=True)
        yield f"{place} ({answer.status_code})", answer.content
    own = Client()
    own.force_login(User.objects.get(username="bob"))
    for place in ("/profile/", "/profile/agents/", "/connections/acme/", "/oauth/device"):
        yield place, own.get(place, follow=True).content


def dump() -> bytes:
    url = os.environ["DATABASE_OWNER_URL"]
    program_file = pgtools.find("pg_dump", pgtools.server_major(url))
    return pgtools.run(program_file, ["--data-only", "--inserts"], url=url)


def stored_places(reader: User) -> list[tuple[str, bytes]]:
    """Pages, and last the dump and the entries."""
    details = [f"{one.reason} {one.details}" for one in Entry.objects.all()]
    return [
        *pages(reader),
        ("the dump", dump()),
        ("entries", "\n".join(details).encode()),
    ]


def command_lines() -> bytes:
    said = b""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            said += place.read_bytes() + b"\n"
        except OSError:
            continue
    return said


@pytest.mark.long
async def test_no_secret_of_a_run_is_seen_anywhere(
    gateway: Stack,
    http: aiohttp.ClientSession,
    run: Run,
    scout: AgentRow,
    bob: User,
    olga: User,
    toolset: Toolset,
    settings: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings.OIDC_FILE = tmp_path / "oidc.json"
    here = f"{gateway.agents_url}/mcp/desk"
    ada = await sync_to_async(person)("ada", *Role)
    static = run.keep("static token", await sync_to_async(accounts.issue_token)(scout, by=bob))
    shown = [
        static,
        await sync_to_async(users_client)(run, bob, here),
        await sync_to_async(device)(run, bob, here),
        await sync_to_async(program)(run, scout, olga, here, gateway.web_url),
        await sync_to_async(enterprise)(run, bob, here, settings),
    ]
    with Guarded() as guarded:
        await sync_to_async(server_with_sign_in)(guarded, toolset, bob)
        keep_servers(run, guarded)
        await calls(run, gateway, http, shown)
        agent = Agent(http, here, static)
        guarded.expire()
        assert (await agent.call("acme.echo", {"text": "hello"})).text == "hello"
        assert [one["grant_type"] for one in guarded.grants].count("refresh_token") == 1
        keep_servers(run, guarded)
        # A server that answers with what it was sent.
        echoed = json.dumps(
            {"error": "invalid_grant", "error_description": " ".join(run.secrets.values())}
        )
        guarded.wrong = 400, echoed.encode()
        guarded.expire()
        reply = await agent.call("acme.echo", {"text": "hello"})
        run.answers.append(reply.body.decode())
        keep_servers(run, guarded)
        lines = command_lines()

    assert len(run.secrets) > 25
    places = [("the command lines", lines), ("the test's own log", caplog.text.encode())]
    places += [(f"log of {name}", one.text().encode()) for name, one in gateway.started.items()]
    places += [(f"answer {n}", text.encode()) for n, text in enumerate(run.answers)]
    places += await sync_to_async(stored_places)(ada)
    assert [text for place in places for text in found_in(run, *place)] == []
    # It was looked at where something is.
    assert all(content for _, content in places if not _.startswith(("log of", "the test's")))
    assert b"agent.token_rejected" in places[-2][1]
    assert await ServerCredential.objects.aexists()
    assert await AgentToken.objects.exclude(resource="").acount() >= 4


@pytest.mark.long
def test_the_search_finds_what_was_planted(
    run: Run, toolset: Toolset, bob: User, caplog: pytest.LogCaptureFixture
) -> None:
    """In a line of a log, an entry and a command line: a search that finds nothing proves nothing
    until it has found something."""
    secret = run.keep("planted", f"pl4nted+{secrets.token_urlsafe(24)}/=")
    ada = person("ada", *Role)
    assert [text for place in stored_places(ada) for text in found_in(run, *place)] == []

    logging.getLogger("countersign").warning("the answer was %s", secret)
    record("agent.disabled", actor=bob.actor, reason=f"It sent {secret}.")
    argv = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", secret]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe) as sleeper:
        # In the moment in which it begins, a process has no command line.
        assert sleeper.stdout is not None
        sleeper.stdout.readline()
        places = [("the command lines", command_lines()), ("the log", caplog.text.encode())]
        assert sleeper.stdin is not None
    places += stored_places(ada)

    found = {place for place, content in places if found_in(run, place, content)}
    entry = Entry.objects.get(action="agent.disabled")
    assert found >= {"the command lines", "the log", "the dump", "entries"}
    assert f"/audit/{entry.pk}/ (200)" in found


@pytest.mark.parametrize("form", range(6))
def test_a_secret_is_found_in_each_form(run: Run, form: int) -> None:
    secret = run.keep("planted", 'pl4nted+"quoted"/and=more')
    hidden = b"before " + list(forms_of(secret))[form] + b" after"

    assert found_in(run, "there", hidden) == ["planted 0 in there"]
    assert found_in(run, "there", hidden.replace(hidden[9:14], b"")) == []
