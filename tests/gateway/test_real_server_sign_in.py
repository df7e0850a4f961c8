"""Two people at a server of each SDK, by the authorization server oidc-provider."""

import asyncio
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from accounts import services as accounts
from accounts.models import User
from accounts.roles import Role
from config.embedded.valkey import free_port
from registry import services
from registry.discovery import discovery
from registry.models import Server, ServerClient, ServerCredential, Toolset
from tests.accounts.real_provider import HERE, PlainBrowser, new_key
from tests.conformance.suite import node
from tests.conftest import person
from tests.gateway.conftest import Play
from tests.processes import ROOT
from tests.signing_in import set_up, to_there

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

SERVERS = {
    "python": [sys.executable, "-m", "tests.upstreams.signed"],
    "typescript": [node(), str(ROOT / "tests" / "upstreams" / "signed.mjs")],
}


@contextmanager
def authorization_server(resource: str, *, ttl_s: int) -> Iterator[str]:
    env = {"KEYS": json.dumps([new_key()]), "PORT": "0", "RESOURCE": resource, "NO_COLOR": "1"}
    process = subprocess.Popen(
        [node(), "authorization.mjs"],
        cwd=HERE,
        env=env | {"TTL_S": str(ttl_s)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield str(json.loads(process.stdout.readline())["issuer"])
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def server_of_an_sdk(sdk: str, port: int, issuer: str) -> Iterator[None]:
    process = subprocess.Popen([*SERVERS[sdk], str(port), issuer], cwd=ROOT)
    try:
        until = time.monotonic() + 30
        while not _answers(port):
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/mcp", timeout=2)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


@pytest.fixture(params=SERVERS)
def sdk(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[3600, 20], ids=["lasting", "expiring"])
def signed(
    request: pytest.FixtureRequest, sdk: str, toolset: Toolset, bob: User
) -> Iterator[Server]:
    """Where tokens last less than half a minute, each call renews its person's."""
    port = free_port()
    resource = f"http://127.0.0.1:{port}/mcp"
    with (
        authorization_server(resource, ttl_s=request.param) as issuer,
        server_of_an_sdk(sdk, port, issuer),
    ):
        server = services.register(
            "signed", transport="http", url=resource, owner=bob, by=bob, publish=True
        )
        services.add_server(toolset, server, by=bob)
        set_up(server, Server.SignIn.PERSON, by=bob)
        sign_in(bob, "bob-there")
        (found,) = asyncio.run(discovery.look_at([server.pk]))
        assert found.succeeded, found.summary
        yield server


def sign_in(who: User, login: str) -> None:
    client = Client()
    client.force_login(who)
    back = urlsplit(PlainBrowser().sign_in(to_there(client, "signed"), login))
    response = client.get(f"{back.path}?{back.query}", follow=True)
    assert "is connected" in response.text, response.text


async def test_each_person_is_themselves_there(
    play: Play, signed: Server, toolset: Toolset
) -> None:
    dora = await sync_to_async(person)("dora", Role.VIEWER)
    token = await sync_to_async(_agent_of)(dora, toolset)
    await sync_to_async(sign_in)(dora, "dora-there")
    agents = {"bob-there": play(), "dora-there": play(token=token)}

    for _round in range(2):
        replies = await asyncio.gather(*(one.call("signed.whoami") for one in agents.values()))
        assert [reply.text for reply in replies] == list(agents)

    made = await ServerClient.objects.aget()
    assert made.registration == ServerClient.Registration.DYNAMIC
    assert await ServerCredential.objects.filter(ended="").acount() == 2


def _agent_of(owner: User, toolset: Toolset) -> str:
    agent = accounts.create_agent("rover", owner=owner, by=owner)
    services.assign(toolset, agent, by=owner)
    return accounts.issue_token(agent, by=owner)
