"""oidc-provider, which others wrote: its keys, clock, answers and tokens for another client, and a
second one beside it.

What it refuses to do, a provider of ours does in test_identity_providers.py.
"""

import queue
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.conf import settings as current
from django.test import Client

from accounts.models import Identity
from accounts.roles import ensure_roles
from audit.models import Entry
from tests.accounts import real_provider
from tests.accounts.factors import is_in
from tests.accounts.real_provider import PlainBrowser
from tests.accounts.test_identity_providers import Configure, begin, configure, refused

__all__ = ["configure"]

pytestmark = pytest.mark.django_db
NORA = {"nora": {"email": "nora@example.com", "email_verified": True}}
Providers = dict[str, dict[str, Any]]


class Run(Protocol):
    def __call__(self, slug: str = ..., **options: Any) -> str: ...


@pytest.fixture
def run(configure: Configure, monkeypatch: pytest.MonkeyPatch, db: None) -> Iterator[Run]:
    """Each time one provider more, which lets in whoever has an address at example.com."""
    ensure_roles()
    monkeypatch.setenv("COMPANY_SECRET", real_provider.SECRET)
    known: Providers = {}
    with ExitStack() as running:

        def begin_one(slug: str = "company", **options: Any) -> str:
            one = real_provider.running(current.PUBLIC_URL, NORA, slug=slug, **options)
            issuer = running.enter_context(one)
            known[slug] = {
                "issuer": issuer, "name": slug, "client_secret_env": "COMPANY_SECRET",
                "first_sign_in": "domain", "domains": ["example.com"],
            }  # fmt: skip
            configure(**known)
            return issuer

        yield begin_one


def answer(client: Client, slug: str = "company") -> str:
    """Where the provider sends the browser of nora back to."""
    back = PlainBrowser().sign_in(begin(client, slug), "nora")
    return back.removeprefix(current.PUBLIC_URL)


def reasons() -> list[str]:
    found = Entry.objects.filter(action__startswith="sign_in.").order_by("id")
    return [one.reason for one in found]


def with_state(back: str, other: str) -> str:
    """The first answer, for the sign-in that the other one is of."""
    given = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}
    given["state"] = parse_qs(urlsplit(other).query)["state"][0]
    return f"{urlsplit(back).path}?{urlencode(given)}"


@pytest.mark.long
def test_an_answer_and_a_code_are_good_once(client: Client, run: Run) -> None:
    run()
    first = answer(client)
    assert client.get(first).status_code == 302
    client.post("/sign-out/")

    refused(client.get(first), "expired, or was used before")
    other = Client()
    refused(other.get(with_state(first, answer(other))), "did not take the code")

    assert "was used before" in reasons()[0]
    assert "did not take the code" in reasons()[1]


@pytest.mark.long
def test_its_keys_are_changed_while_we_run(
    client: Client, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_roles()
    monkeypatch.setenv("COMPANY_SECRET", real_provider.SECRET)
    with real_provider.running(current.PUBLIC_URL, NORA) as issuer:
        policy = {"first_sign_in": "domain", "domains": ["example.com"]}
        configure(company={"issuer": issuer, "client_secret_env": "COMPANY_SECRET", **policy})
        assert client.get(answer(client)).status_code == 302
    port = urlsplit(issuer).port or 0

    with real_provider.running(current.PUBLIC_URL, NORA, port=port) as again:
        assert again == issuer
        other = Client()
        assert other.get(answer(other)).status_code == 302

    assert is_in(other)
    assert Identity.objects.count() == 1


@pytest.mark.long
@pytest.mark.parametrize("ahead_s", [-50, 50])
def test_its_clock_may_differ_by_a_minute(client: Client, run: Run, ahead_s: int) -> None:
    run(ahead_s=ahead_s)

    assert client.get(answer(client)).status_code == 302
    assert is_in(client)


def test_its_clock_may_not_differ_by_more(client: Client, run: Run) -> None:
    run(ahead_s=150)

    refused(client.get(answer(client)), "from the future")

    assert "from the future" in reasons()[0]


@pytest.mark.long
def test_one_of_two_answers_in_place_of_the_other(client: Client, run: Run) -> None:
    run()
    run("other")
    back = answer(client)

    refused(client.get(back.replace("/company/", "/other/")), "Another provider answered")

    assert "Another provider answered" in reasons()[0]
    assert not Identity.objects.exists()


@pytest.mark.long
def test_the_same_address_and_name_at_another_is_another_person(client: Client, run: Run) -> None:
    company, other = run(), run("other")
    assert client.get(answer(client)).status_code == 302
    second = Client()

    assert second.get(answer(second, "other")).status_code == 302

    people = {one.issuer: one.person.username for one in Identity.objects.all()}
    assert people == {company: "nora", other: "nora-2"}


class Caught(NamedTuple):
    """Another client of the provider, whose address for logout tokens is ours to read."""

    client: dict[str, Any]
    tokens: queue.Queue[str]


@pytest.fixture
def another() -> Iterator[Caught]:
    tokens: queue.Queue[str] = queue.Queue()

    class Catcher(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            tokens.put(parse_qs(body)["logout_token"][0])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Catcher) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}"
        client = {
            "client_id": "another",
            "client_secret": real_provider.SECRET,
            "redirect_uris": [f"{here}/callback"],
            "backchannel_logout_uri": f"{here}/logout",
        }
        yield Caught(client, tokens)
        server.shutdown()


@pytest.mark.long
def test_a_logout_token_for_another_client_ends_no_session(
    client: Client, run: Run, another: Caught
) -> None:
    issuer = run(others=[another.client])
    assert client.get(answer(client)).status_code == 302
    browser = PlainBrowser()
    asked = {
        "client_id": "another", "response_type": "code", "scope": "openid",
        "code_challenge": "x" * 43, "code_challenge_method": "S256",
        "redirect_uri": another.client["redirect_uris"][0],
    }  # fmt: skip
    browser.sign_in(f"{issuer}/auth?{urlencode(asked)}", "nora")
    place, page = browser.follow(f"{issuer}/session/end?client_id=another")
    assert page is not None
    agreed = page.replace("<button ", '<input type="hidden" name="logout" value="yes"><button ')
    browser.submit(place, agreed, {})
    token = another.tokens.get(timeout=20)

    reply = Client().post("/sign-in/with/company/logout/", {"logout_token": token})

    assert reply.status_code == 400
    assert is_in(client)
    (entry,) = Entry.objects.filter(action="sign_in.logout_token_rejected")
    assert "for another application" in entry.reason
