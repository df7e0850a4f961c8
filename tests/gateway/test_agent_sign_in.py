"""Users sign in their agents' clients at our own authorization server; and attacks on it."""

import asyncio
import html
import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp
import pytest
from asgiref.sync import sync_to_async
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts import service_accounts
from accounts import services as accounts
from accounts.agent_sign_in import access_tokens, clients, grants, removal
from accounts.agent_sign_in.grants import challenge_of
from accounts.models import Agent as AgentRow
from accounts.models import AgentToken, AuthorizationCode, RefreshToken, SignInClient, User
from accounts.roles import Role
from accounts.tasks import remove_ended_sign_ins
from accounts.tokens import _checksum
from approvals.models import Vote
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from core.request_rate import RequestRate
from gateway.views.agent_sign_in import consent, tokens
from policies.models import Effect
from registry import managed, services
from registry.models import Toolset
from tests.accounts import service_tokens
from tests.conftest import person
from tests.gateway.agent import Agent, Reply
from tests.gateway.client_documents import DocumentHost
from tests.gateway.conftest import AddRule, add_rule, decide, until
from tests.gateway.limiting import limit
from tests.gateway.test_listening import following, listening
from tests.processes import Stack

pytestmark = pytest.mark.django_db(transaction=True)

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
WELL_KNOWN = "/.well-known/oauth-protected-resource"
BACK = "http://127.0.0.1:33418/callback"
VERIFIER = "v" * 50
UNUSED_FOR = clients.UNUSED_FOR[SignInClient.Kind.REGISTERED]
Answer = TypeVar("Answer")


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has counted no requests yet."""
    monkeypatch.setattr(consent, "PAGES", RequestRate(consent.PAGES.amount, 60))
    monkeypatch.setattr(tokens, "REGISTRATIONS", RequestRate(tokens.REGISTRATIONS.amount, 3600))


@pytest.fixture
def open_desk(toolset: Toolset, bob: User) -> Toolset:
    services.set_agent_sign_in(toolset, True, by=bob)
    return toolset


@pytest.fixture
def here(settings: Any) -> str:
    return f"{settings.AGENT_URL}/mcp/desk"


@pytest.fixture
def gateway(stack: Stack, open_desk: Toolset, settings: Any) -> Stack:
    settings.PUBLIC_URL, settings.AGENT_URL = stack.web_url, stack.agents_url
    assert stack.agents
    return stack


@pytest.fixture
def app(db: None) -> SignInClient:
    """A client that registered itself."""
    return clients.register({"client_name": "Desk app", "redirect_uris": [BACK]})


class Browser:
    """A user at the consent page, and the client behind it."""

    def __init__(self, who: User, app: SignInClient, resource: str) -> None:
        self.console = Client()
        self.console.force_login(who)
        self.app, self.resource = app, resource
        self.http = Client(enforce_csrf_checks=True)

    def asked(self, **changed: Any) -> dict[str, str]:
        """As a client asks; None leaves a parameter out."""
        said = {
            "response_type": "code",
            "client_id": self.app.client_id,
            "redirect_uri": BACK,
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            "resource": self.resource,
            "state": "s1",
            **changed,
        }
        return {name: value for name, value in said.items() if value is not None}

    def page(self, **changed: Any) -> Any:
        return self.console.get("/oauth/authorize", self.asked(**changed))

    def press(self, page: Any, decision: str = "allow", console: Client | None = None) -> Any:
        sealed = re.search(r'name="request" value="([^"]+)"', page.content.decode())
        assert sealed, page.content.decode()
        data = {"request": sealed[1], "decision": decision}
        return (console or self.console).post("/oauth/authorize", data)

    def allowed(self, **changed: Any) -> dict[str, str]:
        """The answer that the client gets."""
        answer = self.press(self.page(**changed))
        assert answer.status_code == 302, answer.content.decode()
        return {k: v[0] for k, v in parse_qs(urlsplit(answer["Location"]).query).items()}

    def redeem(self, code: str, **changed: Any) -> Any:
        said = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.app.client_id,
            "redirect_uri": BACK,
            "code_verifier": VERIFIER,
            "resource": self.resource,
            **changed,
        }
        return self.token({name: value for name, value in said.items() if value is not None})

    def refresh(self, token: str, **changed: Any) -> Any:
        said = {"grant_type": "refresh_token", "refresh_token": token, **changed}
        return self.token({"client_id": self.app.client_id, **said})

    def token(self, said: dict[str, Any]) -> Any:
        return self.http.post(
            "/oauth/token", urlencode(said), content_type="application/x-www-form-urlencoded"
        )

    def sign_in(self) -> dict[str, Any]:
        answer = self.redeem(self.allowed()["code"])
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture
def browser(bob: User, app: SignInClient, open_desk: Toolset, here: str) -> Browser:
    return Browser(bob, app, here)


def signed_in(who: User, app: SignInClient, resource: str) -> dict[str, Any]:
    return Browser(who, app, resource).sign_in()


def reasons(action: str = "agent_sign_in.rejected") -> list[str]:
    return [entry.reason for entry in Entry.objects.filter(action=action)]


async def ping(stack: Stack, http: aiohttp.ClientSession, token: str, at: str = "desk") -> Reply:
    return await Agent(http, f"{stack.agents_url}/mcp/{at}", token).post(PING)


async def test_a_client_finds_signs_in_and_calls(
    gateway: Stack, http: aiohttp.ClientSession, app: SignInClient, bob: User
) -> None:
    refused = await ping(gateway, http, "")
    place = f"{gateway.agents_url}{WELL_KNOWN}/mcp/desk"
    assert refused.headers["WWW-Authenticate"] == (
        f'Bearer resource_metadata="{place}", scope="tools"'
    )
    async with http.get(place) as answer:
        said = await answer.json()
    assert said["authorization_servers"] == [gateway.web_url]
    assert said["resource"] == f"{gateway.agents_url}/mcp/desk"

    given = await sync_to_async(signed_in)(bob, app, said["resource"])
    agent = Agent(http, said["resource"], given["access_token"])
    reply = await agent.call("rec.echo", {"text": "hello"})

    assert reply.status == 200, reply.body
    call = await Call.objects.select_related("person", "agent").aget()
    assert (call.person, call.agent.name) == (bob, "bob-registered-desk-app")
    entry = await sync_to_async(lambda: Entry.objects.get(call_id=call.pk, seq=1))()
    told = entry.details["signed_in"]
    assert (told["client_id"], told["subject"]) == (app.client_id, "bob")
    assert (told["client"], told["issuer"]) == ("Desk app", gateway.web_url)
    # So the entry of its outcome has the whole chain, too.
    outcome = await Entry.objects.aget(call_id=call.pk, action="call.succeeded")
    assert outcome.details == {"signed_in": told}
    console = Client()
    await sync_to_async(console.force_login)(bob)
    page = (await sync_to_async(console.get)(f"/calls/{call.pk}/")).content.decode()
    assert all(page.count(one) >= 2 for one in ("Desk app", told["issuer"], told["token"]))
    # One toolset's token opens no other address.
    assert (await ping(gateway, http, given["access_token"], at="desk/rec")).status == 401
    rejected = await Entry.objects.aget(action="agent.token_rejected")
    assert rejected.reason == "The access token is for another address."


async def test_the_outcome_of_an_approved_call_names_client_and_approver(
    gateway: Stack,
    http: aiohttp.ClientSession,
    app: SignInClient,
    bob: User,
    alice: User,
    here: str,
    rule: AddRule,
) -> None:
    assert gateway.worker
    await rule(Effect.ASK, "echo")
    given = await sync_to_async(signed_in)(bob, app, f"{gateway.agents_url}/mcp/desk")
    agent = Agent(http, f"{gateway.agents_url}/mcp/desk", given["access_token"])
    waiting = await agent.call("rec.echo", {"text": "x"})
    await decide(alice)
    state = {"requestState": waiting.result["requestState"]}
    assert (await agent.call("rec.echo", {"text": "x"}, **state)).text == "x"

    entry = await Entry.objects.aget(action="call.succeeded")
    assert entry.details["signed_in"]["client_id"] == app.client_id
    (approver,) = entry.details["approvers"]
    vote = await Vote.objects.aget()
    assert approver == {"name": "alice", "vote": vote.pk}


@pytest.mark.parametrize("at", ["desk", "desk/rec"])
async def test_a_slash_after_the_address_is_the_same_address(
    gateway: Stack, http: aiohttp.ClientSession, app: SignInClient, bob: User, at: str
) -> None:
    """As a user types it, and as clients write it that compare it to the letter."""
    place = f"{gateway.agents_url}{WELL_KNOWN}/mcp/{at}/"
    refused = await ping(gateway, http, "", at=f"{at}/")
    assert f'resource_metadata="{place}"' in refused.headers["WWW-Authenticate"]
    async with http.get(place) as answer:
        typed = (await answer.json())["resource"]
    assert typed == f"{gateway.agents_url}/mcp/{at}/"

    browser = await sync_to_async(Browser)(bob, app, typed)
    given = await sync_to_async(browser.sign_in)()
    for one in (at, f"{at}/"):
        assert (await ping(gateway, http, given["access_token"], at=one)).status == 200
    again = await sync_to_async(browser.refresh)(given["refresh_token"], resource=typed)
    assert again.status_code == 200, again.content
    assert (await AgentToken.objects.aget(client_id=app.client_id)).resource == typed[:-1]
    assert (await ping(gateway, http, given["access_token"], at=f"{at}//")).status in (401, 404)
    other = "desk/rec" if at == "desk" else "desk"
    for one in (other, f"{other}/"):
        assert (await ping(gateway, http, given["access_token"], at=one)).status == 401


async def test_metadata_say_what_the_server_does(gateway: Stack, settings: Any) -> None:
    settings.CLIENT_REGISTRATION = True
    found = await sync_to_async(
        lambda: [
            Client().get(f"/.well-known/{name}")
            for name in ("oauth-authorization-server", "openid-configuration")
        ]
    )()

    for answer in found:
        said = answer.json()
        assert answer["Access-Control-Allow-Origin"] == "*"
        assert said["issuer"] == gateway.web_url
        assert said["code_challenge_methods_supported"] == ["S256"]
        # claude.ai takes documents only where it finds both.
        assert said["client_id_metadata_document_supported"] is True
        assert said["token_endpoint_auth_methods_supported"] == ["none", "private_key_jwt"]
        assert said["authorization_response_iss_parameter_supported"] is True
        assert said["registration_endpoint"] == f"{gateway.web_url}/oauth/register"


def test_it_is_off_until_it_is_switched_on(
    toolset: Toolset, bob: User, app: SignInClient, here: str
) -> None:
    browser = Browser(bob, app, here)

    assert Client().get("/.well-known/oauth-authorization-server").status_code == 404
    assert browser.page().status_code == 400
    answer = browser.http.post("/oauth/register", "{}", content_type="application/json")
    assert (answer.status_code, answer.json()["error"]) == (403, "access_denied")
    assert reasons() == ["The client names no address where users sign in agents."]


def test_the_answer_names_us_and_keeps_the_state(browser: Browser, settings: Any) -> None:
    said = browser.allowed(state="a b&c=d")

    assert (said["iss"], said["state"]) == (settings.PUBLIC_URL, "a b&c=d")


def test_the_page_names_the_client_the_way_back_and_the_tools(browser: Browser) -> None:
    add_rule(Effect.ASK, "echo")

    answer = browser.page()

    page = answer.content.decode()
    for part in ("Desk app", BACK, "Nobody: it registered itself", "rec_echo", browser.resource):
        assert part in page
    asking = page.partition("Requires approval")[2]
    assert "rec_echo" in asking
    assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]
    assert answer["X-Frame-Options"] == "DENY"
    assert "form-action 'self' http://127.0.0.1:33418" in answer["Content-Security-Policy"]
    assert AgentRow.objects.filter(owner__username="bob").count() == 1


def test_the_way_back_to_a_program_at_ipv6_is_let_by_the_browser(
    bob: User, open_desk: Toolset, here: str
) -> None:
    """Content-Security-Policy has no form for such an address, and a browser would stay here."""
    back = "http://[::1]:33418/callback"
    app = clients.register({"client_name": "Desk app", "redirect_uris": [back]})

    answer = Browser(bob, app, here).page(redirect_uri=back)

    assert "form-action 'self' http:;" in f"{answer['Content-Security-Policy']};"


def test_denying_tells_the_client_and_makes_nothing(browser: Browser) -> None:
    answer = browser.press(browser.page(), "deny")

    assert "error=access_denied" in answer["Location"]
    assert not AgentToken.objects.exclude(resource="").exists()
    assert AgentRow.objects.count() == 1
    assert Entry.objects.filter(action="agent_sign_in.denied").count() == 1


def test_one_consent_page_gives_one_sign_in(browser: Browser) -> None:
    page = browser.page()
    codes = [
        parse_qs(urlsplit(browser.press(page)["Location"]).query)["code"][0] for _press in range(2)
    ]

    # Whoever pressed twice goes on with the second answer, which is the first one.
    assert len(set(codes)) == 1
    assert browser.redeem(codes[1]).status_code == 200
    again = browser.press(page)
    assert (again.status_code, "Location" in again) == (400, False)
    assert "The consent page was answered before. Start again." in reasons()
    assert AgentToken.objects.valid().exclude(resource="").count() == 1


def test_presses_at_once_on_one_page_give_one_code(browser: Browser) -> None:
    page = browser.page()
    with ThreadPoolExecutor(4) as pool:
        presses = [pool.submit(_in_thread, lambda: browser.press(page)) for _ in range(4)]
        places = {press.result(20)["Location"] for press in presses}

    assert len(places) == 1
    assert AuthorizationCode.objects.count() == 1
    assert AgentRow.objects.filter(owner__username="bob").count() == 2


def test_a_stranger_signs_in_first_and_comes_back(browser: Browser) -> None:
    answer = Client().get("/oauth/authorize", browser.asked())

    assert answer.status_code == 302
    there = parse_qs(urlsplit(answer["Location"]).query)["next"][0]
    assert there.startswith("/oauth/authorize?response_type=code")
    assert "state=s1" in there


def test_a_client_that_names_no_address_is_signed_in_where_its_user_chooses(
    browser: Browser, bob: User, here: str
) -> None:
    """As before RFC 8707 (MCP 2025-03-26)."""
    alone = browser.page(resource=None)
    assert (here in alone.content.decode(), "decision" in alone.content.decode()) == (True, True)
    other = services.create_toolset("lab", by=bob)
    services.set_agent_sign_in(other, True, by=bob)

    choice = browser.page(resource=None).content.decode()
    assert "decision" not in choice
    ways = [html.unescape(one) for one in re.findall(r'href="(\?[^"]+)"', choice)]
    assert len(ways) == 2
    page = browser.console.get(f"/oauth/authorize{ways[1]}")
    answer = browser.press(page)
    code = parse_qs(urlsplit(answer["Location"]).query)["code"][0]
    assert browser.redeem(code, resource=None).status_code == 200
    grant = AgentToken.objects.exclude(resource="").get()
    assert grant.resource == here.replace("desk", "lab")


def test_the_choice_has_only_toolsets_that_take_the_users_agent(
    browser: Browser, bob: User, here: str
) -> None:
    """Where a policy file names the agents, the consent of a user would end in an error."""
    for slug in ("lab", "shop"):
        services.set_agent_sign_in(services.create_toolset(slug, by=bob), True, by=bob)
    browser.sign_in()
    names = [managed.ManagedName(managed.TOOLSETS, slug) for slug in ("desk", "lab")]
    managed.manage(names, "git: policies.toml")

    choice = browser.page(resource=None).content.decode()
    ways = [html.unescape(one) for one in re.findall(r'href="(\?[^"]+)"', choice)]
    # desk has the agent already.
    assert [parse_qs(way[1:])["resource"] for way in ways] == [
        [here],
        [here.replace("desk", "shop")],
    ]

    names = [managed.ManagedName(managed.TOOLSETS, slug) for slug in ("desk", "lab", "shop")]
    managed.manage(names, "git: policies.toml")
    alone = browser.page(resource=None).content.decode()
    assert (here in alone, "decision" in alone) == (True, True)
    AgentRow.objects.get(name="scout")
    services.unassign(
        Toolset.objects.get(slug="desk"),
        AgentRow.objects.exclude(name="scout").get(),
        by=managed.PolicyApplier.of(bob.actor),
    )
    assert browser.page(resource=None).status_code == 400
    assert reasons() == ["Policy files manage every toolset where users sign in agents."]


def test_nobody_is_asked_for_an_address_where_none_is_open(
    toolset: Toolset, bob: User, app: SignInClient, here: str
) -> None:
    assert Browser(bob, app, here).page(resource=None).status_code == 400
    assert reasons() == ["The client names no address where users sign in agents."]


async def test_the_agents_address_leads_to_the_authorization_servers_metadata(
    gateway: Stack, http: aiohttp.ClientSession
) -> None:
    """For clients of 2025-03-26, which look nowhere else."""
    assert gateway.web
    place = f"{gateway.agents_url}/.well-known/oauth-authorization-server"
    async with http.get(place) as answer:
        said = await answer.json()

    assert (answer.status, said["issuer"]) == (200, gateway.web_url)


WRONG: dict[str, dict[str, Any]] = {
    "no PKCE": {"code_challenge": None},
    "plain PKCE": {"code_challenge_method": "plain"},
    "method left out": {"code_challenge_method": None},
    "short challenge": {"code_challenge": "abc"},
    "implicit": {"response_type": "token"},
    "no client": {"client_id": None},
    "unknown client": {"client_id": "csr_unknown"},
    "no redirect": {"redirect_uri": None},
    "another redirect": {"redirect_uri": "https://evil.example/callback"},
    "longer redirect": {"redirect_uri": f"{BACK}/more"},
    "redirect with a query": {"redirect_uri": f"{BACK}?a=b"},
    "redirect with a user": {"redirect_uri": "http://127.0.0.1:33418@evil.example/callback"},
    "another loopback name": {"redirect_uri": "http://localhost:33418/callback"},
    "https loopback": {"redirect_uri": BACK.replace("http:", "https:")},
    "redirect runs": {"redirect_uri": "javascript:alert(1)"},
    "redirect with a line": {"redirect_uri": f"{BACK}\r\nX: y"},
    "the host": {"resource": "http://127.0.0.1:8001"},
    "two slashes more": {"resource": "http://127.0.0.1:8001/mcp/desk//"},
    "another toolset": {"resource": "http://127.0.0.1:8001/mcp/other"},
    "another server": {"resource": "http://127.0.0.1:8001/mcp/desk/other"},
    "another host": {"resource": "http://evil.example/mcp/desk"},
    "a query": {"resource": "http://127.0.0.1:8001/mcp/desk?x"},
    "long state": {"state": "s" * 3000},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_request_leads_nowhere_and_is_recorded(browser: Browser, wrong: str) -> None:
    answer = browser.page(**WRONG[wrong])

    assert answer.status_code == 400
    assert "Location" not in answer
    (rejected,) = Entry.objects.filter(action="agent_sign_in.rejected")
    asked = WRONG[wrong].get("redirect_uri", BACK) or ""
    assert rejected.details["redirect_uri"] == asked[:100]
    assert not AuthorizationCode.objects.exists()


def test_a_parameter_sent_twice_is_rejected(browser: Browser) -> None:
    query = f"{urlencode(browser.asked())}&redirect_uri=https://evil.example/"

    assert browser.console.get(f"/oauth/authorize?{query}").status_code == 400
    assert reasons() == ["The client sent a parameter twice."]


@pytest.mark.parametrize("place", ["/oauth/authorize", "/oauth/device"])
@pytest.mark.parametrize("inside", ["iframe", "frame", "object", "embed"])
def test_the_page_is_given_into_no_frame_and_the_attempt_is_recorded(
    browser: Browser, place: str, inside: str
) -> None:
    """Click-jacking. No browser would show it; it names the frame for which it asks."""
    there = f"{place}?{urlencode(browser.asked())}"
    framed = {"Sec-Fetch-Dest": inside, "Sec-Fetch-Site": "cross-site"}

    answers = [one.get(there, headers=framed) for one in (browser.console, Client())]

    assert [one.status_code for one in answers] == [400, 400]
    assert not any("decision" in one.content.decode() for one in answers)
    actors = set(Entry.objects.filter(action="agent_sign_in.rejected").values_list("actor"))
    assert {("bob",)} < actors
    assert set(reasons()) == {"Another page asked for the consent page in a frame of it."}
    alone = browser.console.get(there, headers={"Sec-Fetch-Dest": "document"})
    assert alone.status_code == 200


def test_the_port_of_a_program_on_the_users_computer_may_be_another(browser: Browser) -> None:
    answer = browser.press(browser.page(redirect_uri="http://127.0.0.1:50000/callback"))

    assert answer["Location"].startswith("http://127.0.0.1:50000/callback?code=")


def test_a_consent_page_of_another_user_is_worth_nothing(browser: Browser) -> None:
    page = browser.page()
    mallory = Client()
    mallory.force_login(person("mallory", Role.VIEWER))

    answer = browser.press(page, console=mallory)

    assert answer.status_code == 400
    assert reasons() == ["The consent page is of another user, or was changed."]
    assert not AuthorizationCode.objects.exists()


def test_a_form_of_another_site_is_no_consent(browser: Browser, bob: User) -> None:
    sealed = re.search(r'name="request" value="([^"]+)"', browser.page().content.decode())
    assert sealed
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(bob)

    answer = strict.post("/oauth/authorize", {"request": sealed[1], "decision": "allow"})

    assert answer.status_code == 403
    assert not AuthorizationCode.objects.exists()
    assert Entry.objects.filter(action="sign_in.form_rejected").count() == 1


def test_the_way_back_may_end_in_an_empty_query(bob: User, open_desk: Toolset, here: str) -> None:
    back = "https://app.example/callback?"
    app = clients.register({"client_name": "Desk app", "redirect_uris": [back]})

    said = Browser(bob, app, here).allowed(redirect_uri=back)

    assert {"code", "state", "iss"} == set(said)


def test_reading_the_page_allows_nothing(browser: Browser) -> None:
    answer = browser.console.get("/oauth/authorize", {**browser.asked(), "decision": "allow"})

    assert answer.status_code == 200
    assert not AuthorizationCode.objects.exists()


def test_users_without_a_role_sign_nothing_in(
    app: SignInClient, open_desk: Toolset, here: str
) -> None:
    assert Browser(person("mallory"), app, here).page().status_code == 403


def test_a_code_that_is_shown_twice_ends_what_came_of_it(browser: Browser) -> None:
    code = browser.allowed()["code"]
    given = browser.redeem(code).json()

    again = browser.redeem(code)

    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    (grant,) = AgentToken.objects.exclude(resource="")
    assert grant.revoked_at is not None
    assert reasons("token.revoked") == ["Its authorization code was shown twice."]
    assert reasons() == ["The authorization code was used before."]
    assert browser.refresh(given["refresh_token"]).status_code == 400


UNFIT: dict[str, dict[str, Any]] = {
    "another verifier": {"code_verifier": "w" * 50},
    "no verifier": {"code_verifier": None},
    "another redirect": {"redirect_uri": "http://127.0.0.1:50000/callback"},
    "another client": {"client_id": "csr_other"},
    "another resource": {"resource": "http://127.0.0.1:8001/mcp/desk/rec"},
}


@pytest.mark.parametrize("unfit", UNFIT)
def test_a_code_opens_nothing_with_anything_else(browser: Browser, unfit: str) -> None:
    answer = browser.redeem(browser.allowed()["code"], **UNFIT[unfit])

    # One that is not known here registers anew.
    assert answer.status_code == (401 if unfit == "another client" else 400)
    assert not AgentToken.objects.exclude(resource="").exists()
    assert len(reasons()) == (0 if unfit == "no verifier" else 1)


def test_an_old_code_opens_nothing(browser: Browser) -> None:
    code = browser.allowed()["code"]
    AuthorizationCode.objects.update(expires_at=timezone.now())

    assert browser.redeem(code).status_code == 400
    assert reasons() == ["The authorization code has expired."]


def test_a_code_of_a_user_who_was_disabled_opens_nothing(browser: Browser, bob: User) -> None:
    code = browser.allowed()["code"]
    User.objects.filter(pk=bob.pk).update(is_active=False)

    assert browser.redeem(code).status_code == 400


def test_refresh_tokens_rotate_and_one_shown_twice_ends_the_sign_in(browser: Browser) -> None:
    first = browser.sign_in()["refresh_token"]
    second = browser.refresh(first)
    assert second.status_code == 200
    assert second.json()["refresh_token"] != first
    later()

    stolen = browser.refresh(first)

    assert (stolen.status_code, stolen.json()["error"]) == (400, "invalid_grant")
    assert reasons("token.revoked") == ["Its refresh token was shown twice."]
    assert browser.refresh(second.json()["refresh_token"]).status_code == 400


def later() -> None:
    """The grace of each refresh token that was used is over."""
    used = RefreshToken.objects.exclude(used_at=None)
    used.update(used_at=timezone.now() - grants.GRACE)


def test_a_client_whose_answer_was_lost_refreshes_once_more(browser: Browser) -> None:
    first = browser.sign_in()["refresh_token"]

    answers = [browser.refresh(first).json() for _ in range(3)]

    assert len({one["refresh_token"] for one in answers}) == 1
    assert len({one["access_token"] for one in answers}) == 3
    # One family: the first token, and its successor.
    assert RefreshToken.objects.count() == 2
    assert reasons() == reasons("token.revoked") == []
    assert browser.refresh(answers[0]["refresh_token"]).status_code == 200


def test_the_grace_is_over_once_the_successor_was_used(browser: Browser) -> None:
    """The client had the answer: whoever shows the old one has it from somewhere."""
    first = browser.sign_in()["refresh_token"]
    second = browser.refresh(first).json()["refresh_token"]
    third = browser.refresh(second).json()["refresh_token"]

    assert browser.refresh(first).status_code == 400
    assert reasons("token.revoked") == ["Its refresh token was shown twice."]
    assert browser.refresh(third).status_code == 400


@pytest.mark.parametrize(
    "changed", [{"client_id": "csr_other"}, {"resource": "http://127.0.0.1:8001/mcp/other"}]
)
def test_the_grace_is_the_clients_alone(browser: Browser, changed: dict[str, str]) -> None:
    first = browser.sign_in()["refresh_token"]
    assert browser.refresh(first).status_code == 200

    answer = browser.refresh(first, **changed)

    is_known = "client_id" not in changed
    expected = (400, "invalid_grant") if is_known else (401, "invalid_client")
    assert (answer.status_code, answer.json()["error"]) == expected
    assert "refresh_token" not in answer.json()


def test_a_thief_and_the_client_within_the_grace_end_the_sign_in_soon(browser: Browser) -> None:
    """Both get one successor, and only one of them can use it without the other being seen."""
    first = browser.sign_in()["refresh_token"]
    clients_own, thiefs = (browser.refresh(first).json()["refresh_token"] for _ in range(2))
    assert browser.refresh(thiefs).status_code == 200
    later()

    assert browser.refresh(clients_own).status_code == 400
    assert not AgentToken.objects.sign_ins().exists()


def test_what_ended_long_ago_is_removed_and_its_entries_stay(
    browser: Browser, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, never_redeemed = browser.sign_in(), browser.allowed()["code"]
    other = clients.register({"client_name": "Other", "redirect_uris": [BACK]})
    remove_ended_sign_ins()
    assert AuthorizationCode.objects.count() == 2
    assert SignInClient.objects.filter(pk=other.pk).exists()
    entries = Entry.objects.count()

    AuthorizationCode.objects.update(expires_at=timezone.now() - removal.CODES_KEPT * 2)
    SignInClient.objects.update(read_at=timezone.now() - UNUSED_FOR * 2)
    AgentToken.objects.update(revoked_at=timezone.now() - removal.GRANTS_KEPT * 2)
    remove_ended_sign_ins()

    assert not AuthorizationCode.objects.exists()
    assert not RefreshToken.objects.exists()
    assert list(SignInClient.objects.all()) == [browser.app]
    # Calls name the sign-in by which they were asked.
    assert AgentToken.objects.exclude(resource="").count() == 1
    assert Entry.objects.count() == entries
    assert browser.redeem(never_redeemed).status_code == 400
    assert browser.refresh(given["refresh_token"]).status_code == 400


@pytest.mark.long
@pytest.mark.parametrize(
    "changed", [{"client_id": "csr_other"}, {"resource": "http://127.0.0.1:8001/mcp/other"}]
)
def test_a_refresh_token_is_its_clients_and_its_toolsets(
    browser: Browser, changed: dict[str, str]
) -> None:
    token = browser.sign_in()["refresh_token"]

    # A client that is not known learns that it has to register.
    assert browser.refresh(token, **changed).status_code == (401 if "client_id" in changed else 400)
    assert len(reasons()) == 1


def test_nothing_is_refreshed_after_the_toolset_was_switched_off(
    browser: Browser, open_desk: Toolset, bob: User
) -> None:
    token = browser.sign_in()["refresh_token"]
    services.set_agent_sign_in(open_desk, False, by=bob)

    assert browser.refresh(token).status_code == 400


def test_a_client_signs_itself_out_and_nobody_elses(browser: Browser) -> None:
    given = browser.sign_in()

    def revoke(token: str, client_id: str) -> int:
        said = urlencode({"token": token, "client_id": client_id})
        form = "application/x-www-form-urlencoded"
        return browser.http.post("/oauth/revoke", said, content_type=form).status_code

    assert revoke(given["access_token"], "csr_other") == 200
    assert revoke("garbage", browser.app.client_id) == 200
    assert AgentToken.objects.valid().exclude(resource="").count() == 1
    assert revoke(given["access_token"], browser.app.client_id) == 200
    assert AgentToken.objects.valid().exclude(resource="").count() == 0
    assert browser.refresh(given["refresh_token"]).status_code == 400


ENDS = ["revoked", "agent disabled", "user disabled", "another owner", "switched off"]


@pytest.mark.long
@pytest.mark.parametrize("end", ENDS)
async def test_what_ends_the_sign_in_ends_its_access_tokens_at_once(
    gateway: Stack,
    http: aiohttp.ClientSession,
    app: SignInClient,
    open_desk: Toolset,
    alice: User,
    bob: User,
    end: str,
) -> None:
    here = f"{gateway.agents_url}/mcp/desk"
    given = await sync_to_async(signed_in)(bob, app, here)
    assert (await ping(gateway, http, given["access_token"])).status == 200
    grant = await AgentToken.objects.select_related("agent").aget(resource=here)

    if end == "revoked":
        await sync_to_async(accounts.revoke_token)(grant, by=bob)
    elif end == "agent disabled":
        await sync_to_async(accounts.set_agent_enabled)(grant.agent, False, by=alice)
    elif end == "user disabled":
        await sync_to_async(accounts.set_active)(bob, False, by=alice)
    elif end == "another owner":
        await AgentRow.objects.filter(pk=grant.agent_id).aupdate(owner=alice)
    else:
        await sync_to_async(services.set_agent_sign_in)(open_desk, False, by=alice)

    async def refused() -> bool:
        return (await ping(gateway, http, given["access_token"])).status == 401

    await until(refused, seconds=3)
    await until(lambda: Entry.objects.filter(action="agent.token_rejected").aexists())


async def test_a_client_hears_nothing_after_sign_in_was_switched_off(
    gateway: Stack,
    http: aiohttp.ClientSession,
    app: SignInClient,
    bob: User,
    open_desk: Toolset,
) -> None:
    resource = f"{gateway.agents_url}/mcp/desk"
    given = await sync_to_async(signed_in)(bob, app, resource)
    agent = Agent(http, resource, given["access_token"])
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"toolsListChanged": True}, request_id="x")
        await following(heard)
        await sync_to_async(services.set_agent_sign_in)(open_desk, False, by=bob)

        assert (await following(heard))["id"] == "x"
        with pytest.raises(StopAsyncIteration):
            await following(heard)


async def test_old_and_forged_access_tokens_open_nothing(
    gateway: Stack,
    http: aiohttp.ClientSession,
    app: SignInClient,
    bob: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = f"{gateway.agents_url}/mcp/desk"
    monkeypatch.setattr(access_tokens, "LIFETIME_S", -5)
    old = (await sync_to_async(signed_in)(bob, app, here))["access_token"]
    monkeypatch.setattr(access_tokens, "LIFETIME_S", 300)
    new = (await sync_to_async(signed_in)(bob, app, here))["access_token"]
    forged = [
        new[:-43] + "A" * 43,
        new.replace(new.split("_")[2], "9999999999"),
        old.replace(old.split("_")[1], new.split("_")[1]),
        new[:-1],
        "cso_",
    ]

    assert (await ping(gateway, http, new)).status == 200
    assert {(await ping(gateway, http, one)).status for one in [old, *forged]} == {401}
    entries = [one async for one in Entry.objects.filter(action="agent.token_rejected")]
    # What anybody can make up has one entry of each kind, however much of it is sent.
    assert sorted(one.reason for one in entries) == [
        "It is no access token.",
        "The access token has a signature that is not ours.",
        "The access token has expired.",
    ]
    assert not any(one in json.dumps(e.details) for one in [old, *forged[:4]] for e in entries)


async def test_agent_tokens_that_open_nothing_are_written_down_in_bounded_number(
    gateway: Stack, http: aiohttp.ClientSession, bob: User
) -> None:
    agent = await sync_to_async(accounts.create_agent)("spare", owner=bob, by=bob)
    texts = [await sync_to_async(accounts.issue_token)(agent, by=bob) for _ in range(3)]
    rows = [await AgentToken.objects.aget(public_id=text[4:12]) for text in texts]
    await sync_to_async(accounts.revoke_token)(rows[0], by=bob)
    await AgentToken.objects.filter(pk=rows[1].pk).aupdate(
        expires_at=timezone.now() - timedelta(days=1)
    )
    wrong, unknown = with_secret_of(texts[2], texts[0]), with_secret_of("csa_AAAAAAAA_", texts[0])
    unsigned = "eyJhbGciOiJub25lIn0.eyJpc3MiOiJ4In0.AA"
    refresh = secrets.token_urlsafe(32)

    for text in [*texts[:2], wrong, unknown, unsigned, refresh] * 3:
        assert (await ping(gateway, http, text)).status == 401
    for _ in range(30):
        await ping(gateway, http, secrets.token_urlsafe(32))

    entries = [one async for one in Entry.objects.filter(action="agent.token_rejected")]
    assert sorted((one.reason, one.agent, one.details.get("token", "")) for one in entries) == [
        ("It is no access token.", "", ""),
        ("No identity provider gives agents tokens here.", "", ""),
        ("The agent token has expired.", "spare", rows[1].public_id),
        ("The agent token is not known.", "", ""),
        ("The agent token was revoked.", "spare", rows[0].public_id),
        ("The secret of the agent token is wrong.", "spare", rows[2].public_id),
    ]
    assert not any(texts[0][13:50] in json.dumps(one.details) for one in entries)


def with_secret_of(token: str, other: str) -> str:
    """Well-formed, with the id of the first."""
    body = token[:13] + other[13:56]
    return f"{body}_{_checksum(body)}"


def test_a_revoked_token_at_rest_is_written_down(bob: User) -> None:
    agent = accounts.create_agent("spare", owner=bob, by=bob)
    text = accounts.issue_token(agent, by=bob)
    accounts.revoke_token(agent.tokens.get(), by=bob)

    for _ in range(2):
        answer = Client().get("/api/calls", headers={"Authorization": f"Bearer {text}"})
        assert answer.status_code == 401
    (entry,) = Entry.objects.filter(action="agent.token_rejected")
    assert (entry.reason, entry.agent) == ("The agent token was revoked.", "spare")


def test_two_users_of_one_client_are_two_agents(
    browser: Browser, app: SignInClient, here: str
) -> None:
    browser.sign_in()
    browser.sign_in()
    ana = person("ana", Role.VIEWER)
    Browser(ana, app, here).sign_in()

    found = AgentToken.objects.exclude(resource="").values_list("agent__name", "agent__owner__pk")
    assert set(found) == {
        ("bob-registered-desk-app", browser_owner(browser)),
        ("ana-registered-desk-app", ana.pk),
    }


def test_a_client_that_registered_itself_takes_no_name_of_one_with_a_document(
    browser: Browser, bob: User, here: str
) -> None:
    app = clients.register({"client_name": "claude-ai", "redirect_uris": [BACK]})
    Browser(bob, app, here).sign_in()
    genuine = SignInClient.objects.create(
        client_id="https://claude.ai/oauth/client", kind=SignInClient.Kind.DOCUMENT
    )

    names = [grants.agent_of(bob, app), grants.find_or_make_agent(bob, genuine)]

    assert [str(one) for one in names] == ["bob-registered-claude-ai", "bob-claude-ai"]


def test_a_client_of_a_host_that_registers_again_is_the_same_agent(bob: User) -> None:
    there = ["https://chat.example/callback", "https://chat.example/other"]
    said = {"client_name": "Chat", "redirect_uris": there}
    before = clients.register(said)
    agent = grants.find_or_make_agent(bob, before)
    allow_it(bob, before, agent)

    again = clients.register(said)

    assert grants.find_or_make_agent(bob, again) == agent
    ana = person("ana", Role.VIEWER)
    assert grants.find_or_make_agent(ana, again) != agent


@pytest.mark.parametrize(
    ("changed", "agents"),
    [
        # Another client of hosts, which registers twice.
        ({"client_name": "Chat 2"}, 2),
        ({"redirect_uris": ["https://chat.example/callback", "https://evil.example/"]}, 2),
        # Each time another one.
        ({"redirect_uris": ["https://chat.example/callback", BACK]}, 3),
        ({"redirect_uris": ["https://chat.example/callback", "com.example.chat:/callback"]}, 3),
        ({"redirect_uris": ["https://localhost/callback"]}, 3),
        ({"grant_types": ["authorization_code", clients.DEVICE_GRANT]}, 3),
    ],
)
def test_a_client_that_others_could_pass_for_is_another_agent_each_time(
    bob: User, changed: dict[str, Any], agents: int
) -> None:
    """What it registers proves nothing where a program on the user's computer gets the codes."""
    said = {"client_name": "Chat", "redirect_uris": ["https://chat.example/callback"]}
    made = set()
    for one in (said, said | changed, said | changed):
        client = clients.register(one)
        agent = grants.find_or_make_agent(bob, client)
        allow_it(bob, client, agent)
        made.add(agent.pk)

    assert len(made) == agents


def allow_it(who: User, client: SignInClient, agent: AgentRow) -> None:
    grants.allow(
        client=client,
        person=who,
        agent=agent,
        resource="https://agents.example/mcp/desk",
        redirect_uri=client.redirect_uris[0],
        challenge=challenge_of(VERIFIER),
    )


def browser_owner(browser: Browser) -> int:
    return int(browser.console.session["_auth_user_id"])


def test_a_disabled_agent_is_not_signed_in_again(browser: Browser, alice: User) -> None:
    browser.sign_in()
    agent = AgentRow.objects.get(name="bob-registered-desk-app")
    accounts.set_agent_enabled(agent, False, by=alice)

    answer = browser.press(browser.page())

    assert answer.status_code == 400
    assert "The agent of this client is disabled." in reasons()


def test_secrets_are_kept_nowhere(browser: Browser) -> None:
    code = browser.allowed()["code"]
    given = browser.redeem(code).json()

    secrets_given = (code, given["access_token"], given["refresh_token"])
    kept = [
        *map(bytes, AuthorizationCode.objects.values_list("digest", flat=True)),
        *map(bytes, RefreshToken.objects.values_list("digest", flat=True)),
        *(json.dumps(entry.details).encode() for entry in Entry.objects.all()),
    ]
    assert not any(secret.encode() in one for one in kept for secret in secrets_given)


def register(said: Any) -> Any:
    body = said if isinstance(said, str) else json.dumps(said)
    return Client().post("/oauth/register", body, content_type="application/json")


def test_clients_register_where_that_is_switched_on(open_desk: Toolset, settings: Any) -> None:
    settings.CLIENT_REGISTRATION = True

    answer = register(
        {
            "client_name": "  Cur\tsor  ",
            "redirect_uris": ["cursor://anysphere.cursor-mcp/oauth/callback"],
            "token_endpoint_auth_method": "client_secret_basic",
        }
    )

    said = answer.json()
    assert answer.status_code == 201
    assert (said["token_endpoint_auth_method"], said["client_name"]) == ("none", "Cur sor")
    assert "client_secret" not in said
    assert Entry.objects.filter(action="agent_client.registered").count() == 1


@pytest.mark.parametrize(
    "uri",
    [
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "vscode://vendor.extension/callback",
        "com.example.chat:/callback",
        "http://localhost:4000/callback",
        "chat://callback",
    ],
)
def test_apps_of_native_clients_and_those_that_an_operator_names_are_registered(
    open_desk: Toolset, settings: Any, uri: str
) -> None:
    settings.CLIENT_REGISTRATION = True
    settings.CLIENT_SCHEMES = frozenset({"chat"})

    assert register({"redirect_uris": [uri]}).status_code == 201


# Of browsers, of programs that come with a system, and words that an app may take on any computer.
SYSTEM_SCHEMES = (
    *("jnlp", "file", "blob", "view-source", "intent", "ssh", "steam", "zoommtg", "slack", "chat"),
    *("microsoft.windows.camera", "com.apple.systempreferences", "x-apple.systempreferences"),
)


@pytest.mark.parametrize(
    "said",
    [
        "[]",
        "{",
        '{"redirect_uris": [], "redirect_uris": ["https://a.example/"]}',
        {},
        {"redirect_uris": []},
        {"redirect_uris": "https://a.example/"},
        {"redirect_uris": ["http://a.example/"]},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"redirect_uris": ["data:text/html,x"]},
        {"redirect_uris": ["https://a.example/#x"]},
        {"redirect_uris": ["https://user@a.example/"]},
        {"redirect_uris": ["https://a.example/\u0430"]},
        {"redirect_uris": ["https:///x"]},
        # Python takes the host of these for the user's own computer.
        {"redirect_uris": ["http://[::1]a.example/"]},
        {"redirect_uris": ["https://a.example[::1]/"]},
        # In Content-Security-Policy, a directive or a policy more.
        {"redirect_uris": ["https://a.example;sandbox/"]},
        {"redirect_uris": ["https://a.example,sandbox/"]},
        {"redirect_uris": ["https://*/"]},
        {"redirect_uris": ["https://a.example%2f.b.example/"]},
        {"redirect_uris": ["mailto:a@b.example"]},
        {"redirect_uris": ["ms-msdt:/id"]},
        {"redirect_uris": ["search-ms:query=a"]},
        {"redirect_uris": ["httpx://evil.example/cb"]},
        *({"redirect_uris": [f"{scheme}://a.example/cb"]} for scheme in SYSTEM_SCHEMES),
        {"redirect_uris": [1]},
        {"redirect_uris": [f"https://a.example/{n}" for n in range(30)]},
        {"redirect_uris": ["https://a.example/"], "client_name": 1},
        {"redirect_uris": ["https://a.example/"], "grant_types": ["client_credentials"]},
        {"redirect_uris": ["https://a.example/"], "padding": "x" * 20_000},
    ],
)
def test_what_cannot_be_used_is_not_registered(
    open_desk: Toolset, settings: Any, said: Any
) -> None:
    settings.CLIENT_REGISTRATION = True

    answer = register(said)

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")
    assert not SignInClient.objects.exists()
    assert len(reasons()) == 1


@pytest.mark.long
def test_a_flood_of_registrations_is_bounded(
    open_desk: Toolset, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CLIENT_REGISTRATION = True
    monkeypatch.setattr(tokens, "REGISTRATIONS", RequestRate(5, 60))
    said = {"redirect_uris": [BACK]}

    # What cannot be registered takes nothing from others behind the address.
    assert {register({"redirect_uris": []}).status_code for _ in range(8)} == {400}
    answers = [register(said) for _ in range(8)]
    assert [one.status_code for one in answers] == [201] * 5 + [429] * 3
    assert 0 < int(answers[-1]["Retry-After"]) <= 60
    assert "This address registers too many clients." in reasons()

    # What no user looked at for long is forgotten.
    monkeypatch.setattr(tokens, "REGISTRATIONS", RequestRate(1000, 60))
    SignInClient.objects.update(read_at=timezone.now() - UNUSED_FOR * 2)
    assert register(said).status_code == 201
    assert SignInClient.objects.count() == 1


def test_a_user_may_take_weeks_between_the_client_and_the_consent(
    browser: Browser, settings: Any
) -> None:
    settings.CLIENT_REGISTRATION = True
    early = timezone.now() - UNUSED_FOR * 0.9
    SignInClient.objects.update(created_at=early, read_at=early)
    assert browser.page().status_code == 200
    # The page was seen: from now on it counts anew.
    SignInClient.objects.update(created_at=early - UNUSED_FOR)
    assert register({"redirect_uris": [BACK]}).status_code == 201

    assert browser.sign_in()["access_token"]


def test_a_flood_displaces_no_client_whose_page_was_seen(
    browser: Browser, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CLIENT_REGISTRATION = True
    monkeypatch.setattr(clients, "UNUSED_MAX", 3)
    for _ in range(2):
        assert register({"redirect_uris": [BACK]}).status_code == 201
    assert browser.page().status_code == 200
    SignInClient.objects.update(network="127.0.0.1")

    assert [register({"redirect_uris": [BACK]}).status_code for _ in range(2)] == [201] * 2

    assert browser.page().status_code == 200


def test_a_client_that_was_forgotten_learns_to_register_again(browser: Browser) -> None:
    code = browser.allowed()["code"]
    browser.app.delete()

    # By this error alone SDKs forget their registration (RFC 6749, 5.2).
    answer = browser.redeem(code)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    page = browser.page()
    assert page.status_code == 400
    assert "the client then registers itself" in page.content.decode()


@pytest.mark.long
def test_a_flood_of_ten_networks_keeps_nobody_out(
    open_desk: Toolset, settings: Any, monkeypatch: pytest.MonkeyPatch, bob: User, here: str
) -> None:
    settings.CLIENT_REGISTRATION = True
    monkeypatch.setattr(clients, "UNUSED_MAX", 20)
    body = json.dumps({"redirect_uris": [BACK]})

    def register_from(address: str) -> SignInClient:
        answer = Client().post(
            "/oauth/register", body, content_type="application/json", REMOTE_ADDR=address
        )
        assert answer.status_code == 201
        return SignInClient.objects.get(client_id=answer.json()["client_id"])

    honest = [register_from("192.0.2.1")]
    for number in range(60):
        register_from(f"198.51.100.{number % 10}")
        if number == 30:
            honest.append(register_from("2001:db8::1"))
    honest.append(register_from("192.0.2.2"))

    assert SignInClient.objects.count() == 20
    for app in honest:
        assert Browser(bob, app, here).page().status_code == 200


def test_names_that_read_alike_are_pointed_out(browser: Browser, bob: User, here: str) -> None:
    browser.sign_in()
    other = clients.register({"client_name": "Desk аpp", "redirect_uris": [BACK]})
    unlike = clients.register({"client_name": "Disk app", "redirect_uris": [BACK]})
    same = clients.register({"client_name": "DESK-APP", "redirect_uris": [BACK]})

    assert "reads like this one" not in browser.page().content.decode()
    assert "reads like this one" not in Browser(bob, unlike, here).page().content.decode()
    assert "reads like this one" in Browser(bob, same, here).page().content.decode()
    Browser(bob, same, here).allowed()
    allowed = Entry.objects.filter(action="agent_sign_in.allowed").order_by("pk")
    assert [one.details.get("reads_like") for one in allowed] == [None, browser.app.client_id]
    # A letter of another alphabet is shown as one, and passes for the Latin one.
    shown = Browser(bob, other, here).page().content.decode()
    assert "Desk аpp" not in shown
    assert "reads like this one" in shown


@pytest.mark.parametrize(
    "name",
    ["Desk app (official)", "My Desk app", "Desk\u3164app", "ⅮΕЅК аpp", "D3$k @pp", "ꓓꓰꓢꓗ app"],
)
def test_a_name_that_holds_an_allowed_one_is_pointed_out(
    browser: Browser, bob: User, here: str, name: str
) -> None:
    browser.sign_in()
    app = clients.register({"client_name": name, "redirect_uris": [BACK]})

    assert "reads like this one" in Browser(bob, app, here).page().content.decode()


def test_an_allowed_client_of_a_products_name_hides_no_warning_of_the_product(
    open_desk: Toolset, bob: User, here: str
) -> None:
    """Whoever had one user allow a first one would have the others warned of less."""
    first, second = (
        clients.register({"client_name": "Claude", "redirect_uris": [BACK]}) for _ in range(2)
    )
    Browser(bob, first, here).allowed()

    text = Browser(bob, second, here).page().content.decode()

    assert "reads like this one" in text
    assert "nobody confirms that it is" in text


@pytest.mark.parametrize("name", ["\u3164\u200b", " ", "\u202eppa", "De\u2066sk"])
def test_a_name_that_is_blank_or_turns_is_not_registered(
    open_desk: Toolset, settings: Any, name: str
) -> None:
    settings.CLIENT_REGISTRATION = True

    answer = register({"client_name": name, "redirect_uris": [BACK]})

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")
    assert len(reasons()) == 1
    assert clients.register({"client_name": "Desk\u200b", "redirect_uris": [BACK]}).name == "Desk"


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("Claude", "Claude"),
        ("\u0421laude", "Claude"),
        ("Cl\u0430ud\u0435", "Claude"),
        ("\uff23\uff4c\uff41\uff55\uff44\uff45", "Claude"),
        ("C1aude AI", "Claude"),
        ("claude.ai", "Claude"),
        ("Claude (official)", "Claude"),
        ("Anthropic", "Anthropic"),
        ("\u0421hatGPT", "ChatGPT"),
        ("C\u03c5rs\u03bfr", "Cursor"),
        ("Curs\u0585r", "Cursor"),
        ("Cl4ude", "Claude"),
        ("Cl@ud3 4.5", "Claude"),
        # Lisu, Cherokee large and small, Coptic, Hebrew.
        ("\ua4da\ua4e1\ua4ee\ua4f4\ua4d3\ua4f0", "Claude"),
        ("\u13dflaude", "Claude"),
        ("\uabaflaude", "Claude"),
        ("\u2ca4laude", "Claude"),
        ("Curs\u05e1r", "Cursor"),
        ("GPT-4 notes", ""),
        ("Cursor", ""),
        ("Desk app", ""),
    ],
)
def test_a_name_of_a_well_known_product_is_pointed_out(
    open_desk: Toolset, bob: User, here: str, name: str, product: str
) -> None:
    app = clients.register({"client_name": name, "redirect_uris": [BACK]})
    browser = Browser(bob, app, here)

    text = browser.page().content.decode()

    assert ("nobody confirms that it is" in text) == bool(product)
    assert f"The name reads like that of {product}," in text or not product
    browser.allowed()
    (entry,) = Entry.objects.filter(action="agent_sign_in.allowed")
    assert entry.details.get("reads_like", "") == product


def test_pages_of_one_user_are_bounded(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consent, "PAGES", RequestRate(2, 60))

    assert [browser.page().status_code for _ in range(2)] == [200, 200]
    answer = browser.page()
    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 60


@pytest.fixture
def documents(settings: Any) -> Iterator[DocumentHost]:
    settings.CLIENT_NETWORKS = ["127.0.0.0/8"]
    with DocumentHost() as host:
        yield host


def by_document(documents: DocumentHost, who: User, here: str, **said: Any) -> Browser:
    app = SignInClient(client_id=documents.describe(**said))
    return Browser(who, app, here)


def test_a_client_is_known_by_its_document(
    documents: DocumentHost, bob: User, open_desk: Toolset, here: str
) -> None:
    browser = by_document(documents, bob, here)

    page = browser.page().content.decode()
    given = browser.sign_in()

    host = urlsplit(documents.url).netloc
    assert f">{host}<" in page
    assert "it registered itself" not in page
    assert given["access_token"]
    # It is read once an hour, for all users.
    assert documents.asked == ["/app.json"]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json; charset=utf-8", 200),
        ("application/cimd+json", 200),
        ("Application/JSON", 200),
        ("text/html", 400),
        ("text/plain", 400),
        ("image/png", 400),
        ("application/octet-stream", 400),
    ],
)
def test_a_document_is_served_as_json(
    documents: DocumentHost, bob: User, open_desk: Toolset, here: str, kind: str, status: int
) -> None:
    """A host that keeps files of its users does not vouch for what they uploaded."""
    documents.kind = kind

    page = by_document(documents, bob, here).page()

    assert page.status_code == status
    assert [kind in one for one in reasons()] == [True] * (status == 400)


def test_no_database_connection_is_kept_while_a_document_is_read(
    documents: DocumentHost, bob: User, open_desk: Toolset, here: str, kept_connections: list[bool]
) -> None:
    browser = by_document(documents, bob, here)

    assert browser.page().status_code == 200

    assert kept_connections == [False]


def test_a_document_is_read_anew_and_outlives_its_host_for_a_day(
    documents: DocumentHost, bob: User, open_desk: Toolset, here: str
) -> None:
    browser = by_document(documents, bob, here)
    assert browser.page().status_code == 200

    def age(hours: int) -> None:
        SignInClient.objects.update(read_at=timezone.now() - timedelta(hours=hours))

    age(2)
    documents.answers["/app.json"] = (500, b"")
    assert browser.page().status_code == 200
    age(25)
    assert browser.page().status_code == 400
    documents.describe(redirect_uris=["https://elsewhere.example/callback"])
    assert browser.page().status_code == 400
    assert "The redirect address is none of the client's." in reasons()


@pytest.mark.long
@pytest.mark.parametrize(
    "said",
    [
        {"client_id": "https://other.example/app.json"},
        {"client_id": None},
        {"redirect_uris": []},
        {"redirect_uris": ["http://evil.example/"]},
        {"client_name": 5},
        {"response_types": ["token"]},
        {"padding": "x" * 20_000},
    ],
)
def test_a_document_that_does_not_fit_makes_no_client(
    documents: DocumentHost, bob: User, open_desk: Toolset, here: str, said: dict[str, Any]
) -> None:
    assert by_document(documents, bob, here, **said).page().status_code == 400
    assert not SignInClient.objects.exists()
    assert len(reasons()) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "answer", [(302, b"/app2.json"), (200, b"{"), (200, b"[]"), (404, b""), (200, b"\xff")]
)
def test_an_answer_that_is_no_document_makes_no_client(
    documents: DocumentHost,
    bob: User,
    open_desk: Toolset,
    here: str,
    answer: tuple[int, bytes],
) -> None:
    browser = by_document(documents, bob, here)
    documents.describe("/app2.json", client_id=browser.app.client_id)
    documents.answers["/app.json"] = answer

    assert browser.page().status_code == 400
    assert documents.asked == ["/app.json"]


@pytest.mark.parametrize(
    "client_id",
    [
        "https://cl\u0430ude.ai/app.json",
        "https://claude.ai\u2215x.a.example/app.json",
        "https://claude.ai\u3002a.example/app.json",
        "https://claude.ai;a.example/app.json",
        "https://claude.ai%2f.a.example/app.json",
        "https://a.example/\u0430pp.json",
    ],
)
def test_no_host_vouches_for_a_client_whose_name_reads_like_another_host(
    bob: User, open_desk: Toolset, here: str, client_id: str
) -> None:
    """The page shows it in bold: an address has letters of ASCII alone, and its host no others."""
    app = SignInClient(client_id=client_id, kind=SignInClient.Kind.DOCUMENT)

    assert Browser(bob, app, here).page().status_code == 400
    assert reasons() == ["The client's id is no address that a document may have."]


@pytest.mark.long
def test_documents_are_not_looked_for_inside(
    documents: DocumentHost, bob: User, open_desk: Toolset, here: str, settings: Any
) -> None:
    """Networks of servers are no networks of clients."""
    settings.CLIENT_NETWORKS = []
    settings.UPSTREAM_NETWORKS = ["127.0.0.0/8"]
    inward = [
        documents.describe(),
        documents.url.replace("http://127.0.0.1", "https://127.0.0.1") + "/app.json",
        documents.url.replace("127.0.0.1", "localhost") + "/app.json",
        documents.url.replace("127.0.0.1", "[::ffff:127.0.0.1]") + "/app.json",
        documents.url.replace("127.0.0.1", "2130706433") + "/app.json",
        "https://169.254.169.254/latest/meta-data",
        "https://10.0.0.1/app.json",
        "https://[fd00::1]/app.json",
        "https://[64:ff9b::7f00:1]/app.json",
        "ftp://127.0.0.1/app.json",
        "file:///etc/passwd",
        "https://user:pass@127.0.0.1/app.json",
        "https://a.example/../app.json",
        "https://a.example/%2e%2e/app.json",
        "https://a.example/app.json#x",
        "https://a.example",
        "https://a.example/",
        f"https://a.example/{'x' * 300}",
    ]

    for client_id in inward:
        browser = Browser(bob, SignInClient(client_id=client_id), here)
        assert browser.page().status_code == 400, client_id
    assert documents.asked == []
    assert not SignInClient.objects.exists()
    assert "The client's document is at no public address." in reasons()


def test_strangers_make_us_read_no_document(
    documents: DocumentHost, bob: User, open_desk: Toolset, here: str
) -> None:
    browser = by_document(documents, bob, here)

    Client().get("/oauth/authorize", browser.asked())
    browser.redeem("code")

    assert documents.asked == []


def test_users_see_and_end_their_own_sign_ins(browser: Browser, alice: User) -> None:
    browser.sign_in()
    grant = AgentToken.objects.get(resource=browser.resource)
    hers = Client()
    hers.force_login(alice)

    own = browser.console.get("/profile/agents/").content.decode()
    assert "Desk app" in own
    assert "The client is signed out, and no longer calls tools as agent" in own
    assert "Desk app" not in hers.get("/profile/agents/").content.decode()
    assert hers.post(f"/profile/agents/{grant.public_id}/end/").status_code == 404
    assert browser.console.get(f"/profile/agents/{grant.public_id}/end/").status_code == 405
    assert browser.console.post(f"/profile/agents/{grant.public_id}/end/").status_code == 302

    grant.refresh_from_db()
    assert grant.revoked_at is not None
    assert reasons("token.revoked") == ["Ended by its user."]
    assert "Desk app" not in browser.console.get("/profile/agents/").content.decode()


@pytest.mark.long
def test_administrators_see_the_sign_ins_of_a_toolset(browser: Browser) -> None:
    browser.sign_in()
    ada = Client()
    ada.force_login(person("ada", Role.ADMINISTRATOR))

    assert "Desk app" in ada.get("/agent-sign-ins/?toolset=desk").content.decode()
    assert "Desk app" not in ada.get("/agent-sign-ins/?toolset=des").content.decode()
    assert ">Revoke<" in ada.get("/agent-sign-ins/").content.decode()
    assert browser.console.get("/agent-sign-ins/").status_code == 403


def introspect(token: str, service_token: str) -> Any:
    return Client().post(
        "/oauth/introspect",
        urlencode({"token": token}),
        content_type="application/x-www-form-urlencoded",
        headers={"Authorization": f"Bearer {service_token}"},
    )


@pytest.mark.long
def test_service_accounts_that_may_ask_learn_what_a_token_is(
    browser: Browser, open_desk: Toolset, bob: User
) -> None:
    ada = person("ada", Role.ADMINISTRATOR)
    given = browser.sign_in()
    may = service_token("asker", ["accounts.view_agenttoken"], ada)
    may_not = service_token("other", ["accounts.view_agent"], ada)

    assert introspect(given["access_token"], "").status_code == 401
    assert introspect(given["access_token"], may_not).status_code == 403
    said = introspect(given["access_token"], may).json()
    assert (said["active"], said["sub"], said["aud"]) == (True, "bob", browser.resource)
    assert introspect(given["refresh_token"], may).json()["active"]
    for nothing in ("garbage", given["access_token"][:-1] + "_", may):
        assert introspect(nothing, may).json() == {"active": False}
    services.set_agent_sign_in(open_desk, False, by=bob)
    assert introspect(given["access_token"], may).json() == {"active": False}


def service_token(name: str, scopes: list[str], by: User) -> str:
    account = service_accounts.create(name, purpose="Asks.", scopes=scopes, by=by)
    return service_tokens.issue(account, by=by)


@pytest.mark.long
async def test_rules_and_cards_know_the_client(
    gateway: Stack, http: aiohttp.ClientSession, app: SignInClient, alice: User, bob: User
) -> None:
    said = f"client.id == '{app.client_id}'"
    await sync_to_async(add_rule)(Effect.ASK, "echo", when=said)
    here = f"{gateway.agents_url}/mcp/desk"
    assert gateway.worker
    scout = await AgentRow.objects.aget(name="scout")
    static = await sync_to_async(accounts.issue_token)(scout, by=bob)
    given = await sync_to_async(signed_in)(bob, app, here)

    assert (await Agent(http, here, static).call("rec.echo", {"text": "a"})).status == 200
    asked = asyncio.create_task(
        Agent(http, here, given["access_token"]).call("rec.echo", {"text": "b"})
    )
    await until(lambda: Call.objects.filter(state=State.HELD).aexists())
    call = await Call.objects.aget(state=State.HELD)
    card = await sync_to_async(page_of)(f"/queue/{call.pk}/", alice)
    page = await sync_to_async(page_of)(f"/calls/{call.pk}/", alice)
    await decide(alice)
    await asked

    first = await Entry.objects.aget(call_id=call.pk, seq=1)
    told = first.details["signed_in"]
    chain = ["User", "bob", "Client", "Desk app", told["issuer"], told["token"], "Agent", "Server"]
    shown = card.partition("Identity chain")[2].partition("</ol>")[0]
    assert [shown.find(one) for one in chain] == sorted(shown.find(one) for one in chain)
    assert all(one in shown for one in chain)
    decided = await sync_to_async(page_of)(f"/calls/{call.pk}/", alice)
    assert '<span class="muted small">Approver</span> alice' in decided
    assert f"Asked by the client {app.client_id}, which bob signed in" in card
    assert "Signed-in client" in page
    # The worker judges it as the gateway did.
    await until(lambda: Call.objects.filter(pk=call.pk, state=State.SUCCEEDED).aexists())


@pytest.mark.long
async def test_a_person_has_one_count_for_all_clients_that_they_sign_in(
    gateway: Stack, http: aiohttp.ClientSession, app: SignInClient, alice: User, bob: User
) -> None:
    await limit("calls", 1, period="hour", per=["person"])
    await sync_to_async(add_rule)(Effect.ALLOW, "echo")
    here = f"{gateway.agents_url}/mcp/desk"
    again = await sync_to_async(clients.register)(
        {"client_name": "Desk app", "redirect_uris": [BACK]}
    )
    replies = []
    for who, client in ((bob, app), (bob, again), (alice, again)):
        given = await sync_to_async(signed_in)(who, client, here)
        agent = Agent(http, here, given["access_token"])
        replies.append(await agent.call("rec.echo", {"text": "a"}))

    assert await AgentRow.objects.filter(owner=bob).acount() == 3
    assert ["is reached: 1 call per hour" in reply.text for reply in replies] == [
        False,
        True,
        False,
    ]


def page_of(path: str, reader: User) -> str:
    console = Client()
    console.force_login(reader)
    return console.get(path).content.decode()


def test_a_code_shown_twice_at_once_ends_what_came_of_it(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second request waits for the first one's row, and sees the sign-in that came of it."""
    code = browser.allowed()["code"]
    is_inside, may_go_on = threading.Event(), threading.Event()

    def wait_once(resource: str, agent: AgentRow) -> bool:
        if not is_inside.is_set():
            is_inside.set()
            may_go_on.wait(10)
        return True

    monkeypatch.setattr(tokens, "is_open", wait_once)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(_in_thread, lambda: browser.redeem(code).status_code)
        assert is_inside.wait(10)
        second = pool.submit(_in_thread, lambda: browser.redeem(code).status_code)
        until_blocked()
        may_go_on.set()
        assert [first.result(20), second.result(20)] == [200, 400]

    (grant,) = AgentToken.objects.exclude(resource="")
    assert grant.revoked_at is not None


def until_blocked() -> None:
    """Waits until a statement of another connection waits for a lock."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
        time.sleep(0.02)
    raise AssertionError("nothing waits")


def _in_thread(work: Callable[[], Answer]) -> Answer:
    try:
        return work()
    finally:
        connection.close()


def test_allow_pressed_twice_makes_one_agent(browser: Browser, bob: User) -> None:
    page = browser.page()

    assert [browser.press(page).status_code for _ in range(2)] == [302, 302]
    assert (
        AgentRow.objects.filter(owner=bob, name__startswith="bob-registered-desk-app").count() == 1
    )


def test_a_user_who_lost_the_right_keeps_no_sign_in(browser: Browser, bob: User) -> None:
    token, code = browser.sign_in()["refresh_token"], browser.allowed()["code"]
    bob.groups.clear()

    assert browser.redeem(code).status_code == 400
    assert browser.refresh(token).status_code == 400
    assert AgentToken.objects.sign_ins().count() == 1


def test_consent_gives_no_right_to_tokens_without_an_end_of_sign_in(
    browser: Browser, bob: User
) -> None:
    """A user who may not add agents gets none with a token of Countersign, which would outlive the
    sign-in and open the toolset's other addresses."""
    browser.sign_in()

    answer = browser.console.post("/agents/bob-registered-desk-app/tokens/", {"days": "30"})

    assert answer.status_code == 403
    assert not AgentToken.objects.filter(resource="").exists()
    page = browser.console.get("/agents/bob-registered-desk-app/").content.decode()
    assert 'action="/agents/bob-registered-desk-app/tokens/"' not in page


@pytest.mark.parametrize("name", ["客户端", "桌面", ""])
def test_names_in_any_writing_are_signed_in(open_desk: Toolset, here: str, name: str) -> None:
    app = clients.register({"client_name": name, "redirect_uris": [BACK]})
    li = person("李雷", Role.VIEWER)

    signed_in(li, app, here)

    assert AgentRow.objects.filter(owner=li).count() == 1


def test_an_agent_has_its_owners_name_and_never_the_clients_alone(
    open_desk: Toolset, here: str
) -> None:
    """Rules name agents: a client shall not choose the name of one that they allow."""
    app = clients.register({"client_name": "ci-bot", "redirect_uris": [BACK]})
    li = person("李雷", Role.VIEWER)

    signed_in(li, app, here)

    assert AgentRow.objects.get(owner=li).name == f"user-{li.pk}-registered-ci-bot"


def test_a_toolset_that_a_file_manages_says_so(browser: Browser) -> None:
    managed.manage([managed.ManagedName(managed.TOOLSETS, "desk")], "git: policies.toml")

    answer = browser.press(browser.page())

    assert answer.status_code == 400
    assert "policies.toml" in answer.content.decode()
    assert len(reasons()) == 1
    assert AgentRow.objects.count() == 1


def test_endpoints_of_clients_take_forms_without_files(browser: Browser) -> None:
    answer = browser.http.post(
        "/oauth/token",
        {"grant_type": "refresh_token", "x": SimpleUploadedFile("x", b"x" * 4_000_000)},
    )

    assert answer.status_code == 400
    assert answer.json()["error_description"] == "Send a form (application/x-www-form-urlencoded)."


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("a=b", "charset=utf-16"),
        ("&".join(f"n{n}=1" for n in range(1500)), "charset=utf-8"),
        ("a=" + "x" * 3_000_000, "charset=utf-8"),
    ],
    ids=["not UTF-8", "many fields", "long"],
)
def test_a_form_that_cannot_be_read_is_answered_as_clients_read_it(
    browser: Browser, body: str, kind: str
) -> None:
    content_type = f"application/x-www-form-urlencoded; {kind}"
    answer = browser.http.post("/oauth/token", body.encode(), content_type=content_type)

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


def test_where_it_is_off_no_document_is_read(
    documents: DocumentHost, bob: User, toolset: Toolset, here: str
) -> None:
    assert by_document(documents, bob, here).page().status_code == 400
    assert documents.asked == []
    assert not SignInClient.objects.exists()


@pytest.mark.parametrize("token", ["agent", "access"])
def test_tokens_of_agents_open_no_consent(browser: Browser, bob: User, token: str) -> None:
    scout = AgentRow.objects.get(name="scout")
    text = (
        accounts.issue_token(scout, by=bob)
        if token == "agent"
        else browser.sign_in()["access_token"]
    )
    bearer = {"Authorization": f"Bearer {text}"}

    answer = Client().get("/oauth/authorize", browser.asked(), headers=bearer)

    assert (answer.status_code, answer["Location"].partition("?")[0]) == (302, "/sign-in/")


def test_a_refresh_token_shown_twice_at_once_has_one_successor(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = browser.sign_in()["refresh_token"]
    is_inside, may_go_on = threading.Event(), threading.Event()

    def wait_once(resource: str, agent: AgentRow) -> bool:
        if not is_inside.is_set():
            is_inside.set()
            may_go_on.wait(10)
        return True

    monkeypatch.setattr(tokens, "is_open", wait_once)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(_in_thread, lambda: browser.refresh(token).json()["refresh_token"])
        assert is_inside.wait(10)
        second = pool.submit(_in_thread, lambda: browser.refresh(token).json()["refresh_token"])
        until_blocked()
        may_go_on.set()
        assert first.result(20) == second.result(20)

    assert AgentToken.objects.sign_ins().count() == 1
    assert RefreshToken.objects.count() == 2


def test_two_consents_at_once_make_one_agent(browser: Browser, bob: User) -> None:
    page = browser.page()
    with ThreadPoolExecutor(4) as pool:
        pressed = [
            pool.submit(_in_thread, lambda: browser.press(page).status_code) for _ in range(4)
        ]
        assert [one.result(20) for one in pressed] == [302] * 4

    assert (
        AgentRow.objects.filter(owner=bob, name__startswith="bob-registered-desk-app").count() == 1
    )


def test_introspection_knows_no_more_than_the_endpoint(
    browser: Browser, open_desk: Toolset, bob: User
) -> None:
    """Neither is a refresh token taken for an access token, nor is one good that opens nothing."""
    may = service_token("asker", ["accounts.view_agenttoken"], person("ada", Role.ADMINISTRATOR))
    given = browser.sign_in()

    assert introspect(given["access_token"], may).json()["token_type"] == "Bearer"
    assert "token_type" not in introspect(given["refresh_token"], may).json()
    services.unassign(open_desk, AgentRow.objects.get(name="bob-registered-desk-app"), by=bob)
    assert introspect(given["access_token"], may).json() == {"active": False}


def test_another_toolset_of_the_same_name_is_not_opened(
    browser: Browser, open_desk: Toolset, bob: User, here: str
) -> None:
    token = browser.sign_in()["refresh_token"]
    open_desk.delete()
    services.set_agent_sign_in(services.create_toolset(slug="desk", by=bob), True, by=bob)

    assert browser.refresh(token).status_code == 400


@pytest.mark.long
def test_one_host_floods_from_one_network_of_ipv6(open_desk: Toolset, settings: Any) -> None:
    """A host has 64 bits of addresses to choose from."""
    settings.CLIENT_REGISTRATION = True
    body = json.dumps({"redirect_uris": [BACK]})

    def status(address: str) -> int:
        return (
            Client()
            .post("/oauth/register", body, content_type="application/json", REMOTE_ADDR=address)
            .status_code
        )

    most = tokens.REGISTRATIONS.amount
    given = [status(f"2001:db8::{n:x}") for n in range(1, most + 3)]
    assert given == [201] * most + [429] * 2
    assert status("2001:db8:0:1::1") == 201
