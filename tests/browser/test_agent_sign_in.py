"""Clients of the SDKs and the Inspector sign in by themselves; a user allows it in the browser."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from accounts.agent_sign_in.grants import challenge_of
from accounts.models import AgentToken
from config.embedded.valkey import free_port
from core import die_with_parent
from registry import services
from registry.models import Toolset
from tests.browser.scene import Office
from tests.browser.scene import office as furnished
from tests.browser.test_axe import look
from tests.conformance.suite import SUITE, node
from tests.console.scenery import PASSWORD
from tests.flows.servers import INSPECTOR, NODE
from tests.gateway.client_documents import DocumentHost
from tests.processes import Stack
from tests.upstreams.papers import Authority

CLIENTS = Path(__file__).parent / "sign_in_clients"
PROGRAMS = {
    "python": [sys.executable, str(CLIENTS / "sign_in.py")],
    "typescript": [NODE, str(CLIENTS / "sign_in.mjs")],
}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def documents(authority: Authority) -> Iterator[DocumentHost]:
    with DocumentHost(authority.server("localhost")) as host:
        yield host


@pytest.fixture
def callback() -> Iterator[DocumentHost]:
    """Where a program on the user's computer waits for the browser."""
    with DocumentHost() as host:
        yield host


@pytest.fixture
def house(own_stack: Stack, authority: Authority, transactional_db: None) -> Stack:
    own_stack.env |= {
        "COUNTERSIGN_CLIENT_REGISTRATION": "1",
        "COUNTERSIGN_CLIENT_NETWORKS": "127.0.0.0/8,::1/128",
        "SSL_CERT_FILE": str(authority.file),
    }
    return own_stack


@pytest.fixture
def office(chromium: Browser, house: Stack) -> Office:
    made = furnished()
    desk = Toolset.objects.get(slug="office")
    services.set_agent_sign_in(desk, True, by=made.alice)
    assert house.web
    assert house.agents
    return made


@pytest.fixture
def page(chromium: Browser, house: Stack) -> Iterator[Page]:
    context = chromium.new_context(base_url=house.web_url)
    yield context.new_page()
    context.close()


class Program:
    def __init__(self, argv: list[str], *given: str) -> None:
        self._process = subprocess.Popen(
            die_with_parent.command([*argv, *given]),
            pass_fds=die_with_parent.lifelines(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parents[2],
        )

    def says(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, self._process.communicate(timeout=60)[1]
        said: dict[str, Any] = json.loads(line)
        return said

    def told(self, text: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()

    def end(self) -> None:
        self._process.communicate(timeout=60)


class InspectorCommand:
    """The Inspector's command line, as a person runs it in a terminal."""

    def __init__(self, storage: Path, *given: str) -> None:
        here, there = pty.openpty()
        self._process = subprocess.Popen(
            die_with_parent.command([node(), str(INSPECTOR), "--cli", *given]),
            pass_fds=die_with_parent.lifelines(),
            # It signs nobody in unless there is a terminal, and opens no browser unless it shows
            # its messages there.
            stdin=there,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "HOME": str(storage),
                "MCP_STORAGE_DIR": str(storage),
                "MCP_INSPECTOR_SECRET_STORE": "file",
            },
        )
        os.close(there)
        self._terminal = here

    def asks_to_open(self) -> str:
        assert self._process.stderr
        for line in self._process.stderr:
            _before, found, url = line.partition("Please navigate to: ")
            if found:
                return url.strip()
        raise AssertionError(self._process.communicate()[0])

    def says(self) -> dict[str, Any]:
        out, complaint = self._process.communicate(timeout=60)
        os.close(self._terminal)
        assert self._process.returncode == 0, out + complaint
        said: dict[str, Any] = json.loads(out)
        return said


def allow(page: Page, url: str) -> None:
    """A stranger signs in first, and comes back to the question."""
    page.goto(url)
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Allow this client to act for you?")
    page.get_by_role("button", name="Allow").click()


@pytest.mark.parametrize(("way", "era"), [("document", "modern"), ("registration", "legacy")])
def test_the_inspector_signs_in_by_itself(
    page: Page,
    house: Stack,
    office: Office,
    documents: DocumentHost,
    tmp_path: Path,
    way: str,
    era: str,
) -> None:
    redirect = f"http://127.0.0.1:{free_port()}/oauth/callback"
    given = [f"{house.agents_url}/mcp/office", "--transport", "http", "--protocol-era", era]
    given += ["--callback-url", redirect]
    if way == "document":
        document = documents.describe(client_name="MCP Inspector", redirect_uris=[redirect])
        given += ["--client-metadata-url", document]
    inspector = InspectorCommand(tmp_path, *given, "--method", "tools/list")

    allow(page, inspector.asks_to_open())
    page.wait_for_url("**/oauth/callback?**")
    listed = inspector.says()["tools"]
    again = InspectorCommand(tmp_path, *given, "--stored-auth-only", "--method", "tools/list")

    assert "mailer_send_mail" in [tool["name"] for tool in listed]
    assert again.says()["tools"] == listed
    grant = AgentToken.objects.exclude(resource="").get()
    assert grant.client_id.startswith("https://localhost" if way == "document" else "csr_")
    assert grant.agent.owner == office.alice


def asked_by_the_suite(folder: Path, revision: str, *given: str) -> subprocess.Popen[str]:
    """The conformance suite's scenarios of authorization servers, with a client of its own."""
    argv = [node(), str(SUITE), "authorization", "--spec-version", revision, "-o", str(folder)]
    return subprocess.Popen(
        die_with_parent.command([*argv, *given]),
        pass_fds=die_with_parent.lifelines(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
def test_the_conformance_suite_is_content_with_the_authorization_server(
    page: Page,
    house: Stack,
    office: Office,
    documents: DocumentHost,
    tmp_path: Path,
    revision: str,
) -> None:
    port = free_port()
    client_id = documents.describe(redirect_uris=[f"http://127.0.0.1:{port}/callback"])
    given = ["--url", house.web_url, "--resource", f"{house.agents_url}/mcp/office"]
    given += ["--client-id", client_id, "--port", str(port)]

    with asked_by_the_suite(tmp_path, revision, *given) as suite:
        assert suite.stdout
        allow(page, next(line for line in suite.stdout if line.startswith(house.web_url)).strip())
        page.wait_for_url("**/callback?**")
        said = suite.stdout.read()

    checks = [
        one for file in tmp_path.glob("**/checks.json") for one in json.loads(file.read_text())
    ]
    wanted = {"authorization-server-metadata", "authorization-code-grant"}
    assert wanted <= {one["id"] for one in checks}, said
    assert {one["status"] for one in checks} == {"SUCCESS"}, said


@pytest.mark.parametrize("way", ["document", "registration"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_an_sdks_client_signs_in_by_itself(
    page: Page,
    house: Stack,
    office: Office,
    documents: DocumentHost,
    callback: DocumentHost,
    program: str,
    way: str,
) -> None:
    redirect = f"{callback.url}/callback"
    given = [f"{house.agents_url}/mcp/office", redirect]
    if way == "document":
        given.append(documents.describe(client_name="An SDK", redirect_uris=[redirect]))
    client = Program(PROGRAMS[program], *given)

    page.goto(client.says()["open"])
    # A stranger signs in first, and comes back to the question.
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Allow this client to act for you?")
    expect(page.get_by_text("mailer_send_mail")).to_be_visible()
    if program == "python":
        assert look(page) == []
    page.get_by_role("button", name="Allow").click()
    page.wait_for_url("**/callback?**")
    client.told(page.url)
    said = client.says()
    client.end()

    assert "mailer_send_mail" in said["tools"]
    grant = AgentToken.objects.exclude(resource="").get()
    assert grant.client_id == said["client_id"]
    assert said["client_id"].startswith("https://localhost" if way == "document" else "csr_")
    assert grant.agent.owner == office.alice
    assert callback.asked[0].startswith("/callback?code=")


def test_the_answer_reaches_a_program_at_ipv6(page: Page, house: Stack, office: Office) -> None:
    redirect = f"http://[::1]:{free_port()}/callback"
    registered = page.request.post(
        "/oauth/register", data={"client_name": "Six", "redirect_uris": [redirect]}
    ).json()
    asked = {
        "response_type": "code",
        "client_id": registered["client_id"],
        "redirect_uri": redirect,
        "code_challenge": challenge_of("v" * 50),
        "code_challenge_method": "S256",
        "resource": f"{house.agents_url}/mcp/office",
    }

    with page.expect_request(lambda sent: sent.url.startswith(f"{redirect}?code=")):
        allow(page, f"/oauth/authorize?{urlencode(asked)}")


def test_it_is_not_shown_inside_another_page(
    page: Page, house: Stack, office: Office, callback: DocumentHost
) -> None:
    """Click-jacking: another site cannot put the question under the user's pointer."""
    client = Program(
        PROGRAMS["python"], f"{house.agents_url}/mcp/office", f"{callback.url}/callback"
    )
    there = client.says()["open"]
    page.goto(f"{callback.url}/")
    page.set_content(f'<iframe src="{there}" width="600" height="600"></iframe>')
    page.wait_for_timeout(0)

    frame = page.frame_locator("iframe")

    expect(frame.get_by_role("button", name="Allow")).to_have_count(0)
    expect(frame.get_by_label("Password")).to_have_count(0)
    client.told("http://127.0.0.1/?code=x")
    client.end()
