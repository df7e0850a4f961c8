"""The web and agents processes at the edge of HTTP: how they stop, and how long they wait."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress

import aiohttp
import pytest
from channels.db import database_sync_to_async
from django.test import Client

from accounts.models import User
from config.embedded.valkey import Valkey
from tests.processes import HOST, Running, Stack
from tests.services import running

pytestmark = pytest.mark.django_db(transaction=True)

GOING_AWAY, TRY_AGAIN_LATER = 1001, 1013


@database_sync_to_async
def session_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


async def closed_page(stack: Stack, session: str, *, at: asyncio.Event) -> int | None:
    """Opens the WebSocket that every console page has; the code that the server closes it with."""
    headers = {"Cookie": f"sessionid={session}", "Origin": stack.web_url}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.ws_connect(f"{stack.web_url}/live/") as page,
    ):
        await page.receive(timeout=20)
        at.set()
        async for _message in page:
            pass
        return page.close_code


@pytest.mark.long
async def test_stopping_closes_open_pages_and_ends_in_good_form(own_stack, alice):
    web = own_stack.web
    opened = asyncio.Event()
    page = asyncio.create_task(closed_page(own_stack, await session_of(alice), at=opened))
    await opened.wait()

    web.process.terminate()

    assert await asyncio.wait_for(page, 20) == GOING_AWAY
    # Less than what supervisors wait for, and far less than a call may take.
    assert await asyncio.to_thread(web.process.wait, 20) == 0
    assert "Traceback" not in web.text()


@pytest.mark.long
async def test_a_console_that_is_ready_has_loaded_its_pages(own_stack):
    own_stack.env["PYTHONPROFILEIMPORTTIME"] = "1"
    web = own_stack.web
    while_starting = loaded_modules(web)

    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{own_stack.web_url}/", allow_redirects=False) as answer,
    ):
        assert answer.status == 302

    assert "config.asgi" in while_starting
    assert {name for name in loaded_modules(web) - while_starting if ".views" in name} == set()


def loaded_modules(process: Running) -> set[str]:
    lines = process.text().splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


async def test_a_page_of_another_origin_opens_no_socket(stack, alice):
    assert stack.web
    session = await session_of(alice)
    elsewhere = stack.web_url.replace(str(stack.web_port), str(stack.agents_port))
    secure = stack.web_url.replace("http:", "https:")
    by_name = f"http://localhost:{stack.web_port}"

    assert await handshake(stack, session, Origin=stack.web_url) == 101
    assert await handshake(stack, session, Origin=by_name, Host=by_name[7:]) == 101
    for origin in (elsewhere, secure, by_name, f"http://{HOST}", "null"):
        assert await handshake(stack, session, Origin=origin) == 403, origin
    assert await handshake(stack, session) == 403
    evil = f"evil.example:{stack.web_port}"
    assert await handshake(stack, session, Origin=f"http://{evil}", Host=evil) == 403


async def handshake(stack: Stack, session: str, **headers: str) -> int:
    headers["Cookie"] = f"sessionid={session}"
    async with aiohttp.ClientSession(headers=headers) as http:
        try:
            async with http.ws_connect(f"{stack.web_url}/live/"):
                return 101
        except aiohttp.WSServerHandshakeError as error:
            return error.status


@pytest.mark.long
async def test_without_a_broker_pages_are_sent_away_to_come_again(own_stack, alice, tmp_path):
    valkey = Valkey(tmp_path)
    with running(valkey, tmp_path / "valkey.log") as broker:
        own_stack.env |= valkey.urls()
        web = own_stack.web
        opened = asyncio.Event()
        page = asyncio.create_task(closed_page(own_stack, await session_of(alice), at=opened))
        await opened.wait()

        broker.kill()

        assert await asyncio.wait_for(page, 30) == TRY_AGAIN_LATER
    assert "live: a page could not be closed" not in web.text()


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Processes that wait half a second for the head of a request."""
    with Stack(tmp_path_factory.mktemp("hasty")) as stack:
        stack.env["COUNTERSIGN_HEAD_WITHIN_S"] = "0.5"
        yield stack


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.mark.long
@pytest.mark.parametrize("name", ["web", "agents"])
@pytest.mark.parametrize("before", [b"", HEALTH], ids=["first", "second"])
@pytest.mark.parametrize("sent", [b"GET /heal", b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: "])
def test_half_a_head_is_not_waited_for(hasty, name, before, sent):
    with connection(hasty, name) as slow:
        if before:
            answer_to(slow, before)
        slow.sendall(sent)

        assert dripped(slow).startswith(b"HTTP/1.1 408 ")


@pytest.mark.long
@pytest.mark.parametrize("name", ["web", "agents"])
def test_a_head_in_parts_is_answered(hasty, name):
    with connection(hasty, name) as slow:
        for part in (HEALTH[:9], HEALTH[9:40], HEALTH[40:] + HEALTH[:9]):
            slow.sendall(part)
        # The next head begins while the first answer is made.
        assert answer_to(slow).startswith(b"HTTP/1.1 200 ")
        assert answer_to(slow, HEALTH[9:]).startswith(b"HTTP/1.1 200 ")


def connection(stack: Stack, name: str) -> socket.socket:
    process: Running = getattr(stack, name)
    assert process.process.poll() is None
    return socket.create_connection((HOST, getattr(stack, f"{name}_port")), timeout=20)


def answer_to(client: socket.socket, request: bytes = b"") -> bytes:
    client.sendall(request)
    answer = client.recv(4000)
    while not answer.endswith(b"}"):
        answer += client.recv(4000)
    return answer


def dripped(slow: socket.socket) -> bytes:
    """Sends a byte now and then, as long as the server takes them; its answer."""
    slow.settimeout(0.05)
    for _ in range(200):
        with suppress(TimeoutError):
            return slow.recv(1000)
        slow.sendall(b"x")
    raise AssertionError("The server still waits for the rest of a head.")
