"""Connecting accounts at servers: settings, links, the way there and back, and attacks on it."""

import asyncio
import html
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest
from asgiref.sync import sync_to_async
from django import db
from django.db import OperationalError, transaction
from django.test import Client
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from calls.running.credentials import CallCredentials
from config.embedded.service import wait_until
from core import connection_pool, guarded_http, seal
from core.errors import RecordUnavailable
from registry import services
from registry.connections import Commands, ServerConnection, connection
from registry.credentials import (
    authorization_server,
    clients,
    credential_store,
    links,
    token_endpoint,
    vault,
)
from registry.credentials.authorization_server import SignInFailed
from registry.credentials.token_endpoint import TokenRejected
from registry.models import CredentialOwner, Server, ServerClient, ServerCredential
from tests.conftest import person
from tests.gateway.client_documents import DocumentHost
from tests.signing_in import at_authorization_server, connect, of, set_up, to_there
from tests.upstreams.guarded import Guarded, secrets_of
from tests.upstreams.papers import Authority

pytestmark = pytest.mark.django_db(transaction=True)
Result = TypeVar("Result")


@pytest.fixture(scope="module")
def running_guarded() -> Iterator[Guarded]:
    with Guarded() as guarded:
        yield guarded


@pytest.fixture
def guarded(running_guarded: Guarded) -> Guarded:
    running_guarded.reset()
    return running_guarded


@pytest.fixture
def olga() -> User:
    return person("olga", Role.OPERATOR)


@pytest.fixture
def dora() -> User:
    return person("dora", Role.VIEWER)


@pytest.fixture
def acme(guarded: Guarded, olga: User) -> Server:
    """A server at which each person signs in with an account of their own."""
    server = services.register("acme", transport="http", url=guarded.url, owner=olga, by=olga)
    set_up(server, Server.SignIn.PERSON, by=olga)
    return server


def browser(of: User) -> Client:
    client = Client()
    client.force_login(of)
    return client


def rejections() -> list[str]:
    return list(Entry.objects.filter(action="credential.rejected").values_list("reason", flat=True))


def test_the_operator_sets_how_a_server_is_signed_in_at(guarded: Guarded, olga: User) -> None:
    services.register("acme", transport="http", url=guarded.url, owner=olga, by=olga)
    form = {"sign_in": "oauth-person", "client_id": "given", "client_secret": "a secret of ours"}

    response = browser(olga).post("/servers/acme/sign-in/", form, follow=True)

    client = ServerClient.objects.get()
    assert (client.client_id, vault.client_secret(client)) == ("given", "a secret of ours")
    assert "a secret of ours" not in response.text
    assert b"a secret of ours" not in bytes(client.sealed_secret or b"")
    (entry,) = Entry.objects.filter(action="server.sign_in_set")
    assert entry.details == {"sign_in": "oauth-person"}


def test_who_may_not_change_servers_does_not_set_their_sign_in(acme: Server, dora: User) -> None:
    for path in ("", "connect/", "disconnect/"):
        response = browser(dora).post(f"/servers/acme/sign-in/{path}", {"sign_in": ""})
        assert response.status_code == 403
    acme.refresh_from_db()
    assert acme.sign_in == Server.SignIn.PERSON


@pytest.mark.parametrize(
    "form",
    [
        {"sign_in": "key-person"},
        {"sign_in": "key-person", "header": "Host"},
        {"sign_in": "key-person", "header": "X Y"},
        {"sign_in": "other"},
        {"sign_in": "oauth", "client_secret": "x"},
    ],
)
def test_what_cannot_be_is_no_sign_in(acme: Server, olga: User, form: dict[str, str]) -> None:
    response = browser(olga).post("/servers/acme/sign-in/", form)

    assert response.status_code == 200
    acme.refresh_from_db()
    assert acme.sign_in == Server.SignIn.PERSON


def test_a_person_connects_and_their_tokens_are_sealed_to_their_row(
    acme: Server, guarded: Guarded, dora: User
) -> None:
    there = to_there(browser(dora), "acme")
    asked = {name: one[0] for name, one in parse_qs(urlsplit(there).query).items()}
    assert (asked["resource"], asked["code_challenge_method"]) == (guarded.url, "S256")
    assert asked["scope"] == "use"

    connect(dora, "acme")

    row = ServerCredential.objects.get()
    assert (row.person, row.issuer, row.scopes) == (dora, guarded.issuer, ["use"])
    assert vault.open_values(row)["access"] in guarded.access
    assert guarded.grants[0]["resource"] == guarded.url
    (entry,) = Entry.objects.filter(action="credential.connected")
    assert (entry.actor, entry.details["owner"]) == ("dora", "dora")


def test_what_metadata_has_as_null_is_absent(
    acme: Server, guarded: Guarded, dora: User, olga: User
) -> None:
    set_up(acme, Server.SignIn.PERSON, by=olga, client_id="given")
    guarded.metadata = {"registration_endpoint": None, "revocation_endpoint": None}
    guarded.metadata |= {"scopes_supported": None}

    connect(dora, "acme")

    assert ServerCredential.objects.get().person == dora


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"token_endpoint": "ftp://a.example/"}, "token_endpoint”不能使用：URL 必须以"),
        ({"token_endpoint": "https://169.254.169.254/t"}, "地址 169.254.169.254 不是公共地址"),
        ({"authorization_endpoint": "https://u:p@a.example/"}, "URL 不得包含用户名或密码"),
        ({"token_endpoint": "https://xn--/"}, "不是 URL"),
        ({"token_endpoint": "https://a.example/\0"}, "不是 URL"),
    ],
)
def test_a_sign_in_that_cannot_be_is_said_in_the_readers_language(
    acme: Server, guarded: Guarded, dora: User, metadata: dict[str, str], said: str
) -> None:
    guarded.metadata = metadata
    client = browser(dora)
    client.cookies["django_language"] = "zh-hans"

    page = client.post("/connections/acme/connect/", follow=True)

    assert said in page.text, [str(one) for one in page.context["messages"]]
    assert not re.search("The (URL|address|authorization)", page.text)


def test_two_people_register_countersign_once(acme: Server, guarded: Guarded, dora: User) -> None:
    connect(dora, "acme")
    connect(person("erin", Role.VIEWER), "acme")

    assert len(guarded.clients) == 1
    (registered,) = guarded.clients.values()
    assert registered["redirect_uris"] == [clients.redirect_uri(acme.pk)]


def test_the_account_of_the_installation_is_an_operators(
    acme: Server, guarded: Guarded, olga: User
) -> None:
    set_up(acme, Server.SignIn.SHARED, by=olga)
    client = browser(olga)
    page = client.post("/servers/acme/sign-in/connect/").text
    there = page.split('class="button primary wide" href="')[1].split('"')[0].replace("&amp;", "&")

    response = client.get(at_authorization_server(there, "robot"))

    assert response.headers["Location"] == "/servers/acme/sign-in/"
    assert ServerCredential.objects.get().person is None


def test_disconnecting_deletes_and_revokes(acme: Server, guarded: Guarded, dora: User) -> None:
    client = connect(dora, "acme")
    held = [*guarded.refresh, *guarded.access]

    client.post("/connections/acme/disconnect/")

    assert not ServerCredential.objects.exists()
    assert guarded.revoked == held


def test_setting_the_address_or_the_sign_in_anew_deletes_every_credential(
    acme: Server, guarded: Guarded, dora: User, olga: User
) -> None:
    connect(dora, "acme")
    acme.refresh_from_db()

    services.set_connection(acme, url="http://127.0.0.1:9/mcp", by=olga)

    assert not ServerCredential.objects.exists()
    acme.refresh_from_db()
    assert acme.sign_in == ""


def test_a_link_is_for_one_person_alone(acme: Server, dora: User) -> None:
    erin = person("erin", Role.VIEWER)
    path = urlsplit(links.page_of(acme, of(dora))).path

    assert browser(dora).get(path).status_code == 200
    other = browser(erin).get(path)
    forged = browser(erin).get(path.replace(f"/{dora.pk}/", f"/{erin.pk}/"))

    assert (other.status_code, forged.status_code) == (403, 403)
    assert "This link is for another user" in other.text
    assert rejections() == ["This link is for another user."]
    (entry,) = Entry.objects.filter(action="credential.rejected")
    assert (entry.actor, entry.server) == ("erin", "acme")


def test_the_link_says_what_its_button_does(acme: Server, guarded: Guarded, dora: User) -> None:
    path = urlsplit(links.page_of(acme, of(dora))).path

    def button() -> str:
        found = re.search(r'<button class="button primary">([^<]+)</button>', page().text)
        assert found is not None
        return found[1]

    def page() -> Any:
        return browser(dora).get(path)

    assert button() == "Connect"
    connect(dora, "acme")
    assert button() == "Sign in again"
    ServerCredential.objects.update(wanted_scopes=["write"])
    assert button() == "Allow more"


def test_one_rejected_answer_hides_no_other(acme: Server, guarded: Guarded, dora: User) -> None:
    """A link of another user, then that user's answer, an answer of another issuer, one twice."""
    erin = person("erin", Role.VIEWER)
    client = browser(erin)
    hers = at_authorization_server(to_there(browser(dora), "acme"), "dora")
    own = at_authorization_server(to_there(client, "acme"), "erin")

    for _ in range(2):
        client.get(urlsplit(links.page_of(acme, of(dora))).path)
        client.get(hers)
        client.get(own.replace("iss=", "iss=https%3A%2F%2Fevil.example%2F"))
        client.get(own)

    found = Entry.objects.filter(action="credential.rejected")
    assert {(one.actor, one.server) for one in found} == {("erin", "acme")}
    assert len(set(rejections())) == len(rejections()) == 3


def test_who_is_not_signed_in_is_led_to_the_sign_in(acme: Server, dora: User) -> None:
    response = Client().get(urlsplit(links.page_of(acme, of(dora))).path)

    assert response.status_code == 302
    assert response.headers["Location"].startswith("/sign-in/")


def test_an_answer_is_good_once(acme: Server, guarded: Guarded, dora: User) -> None:
    client = browser(dora)
    back = at_authorization_server(to_there(client, "acme"), "dora")
    client.get(back)

    client.get(back)

    assert len(guarded.grants) == 1
    assert rejections() == ["This sign-in expired, or was used before. Begin again."]


def test_an_answer_in_another_persons_browser_connects_nothing(
    acme: Server, guarded: Guarded, dora: User
) -> None:
    """Else whoever sends a link could have others act with their own account, or the reverse."""
    back = at_authorization_server(to_there(browser(dora), "acme"), "dora")

    browser(person("erin", Role.VIEWER)).get(back)

    assert (guarded.grants, ServerCredential.objects.count()) == ([], 0)
    assert len(rejections()) == 1


def test_an_answer_after_another_signed_in_in_the_same_browser_connects_nothing(
    acme: Server, guarded: Guarded, dora: User
) -> None:
    client = browser(dora)
    back = at_authorization_server(to_there(client, "acme"), "dora")
    kept = client.session["at_servers"]
    client.force_login(person("erin", Role.VIEWER))
    session = client.session
    session["at_servers"] = kept
    session.save()

    client.get(back)

    assert guarded.grants == []
    assert rejections() == ["This browser was signed in as another user. Begin again."]


@pytest.mark.parametrize("iss", ["https://evil.example.org", None])
def test_the_answer_of_another_issuer_is_not_taken(
    acme: Server, guarded: Guarded, dora: User, iss: str | None
) -> None:
    """Mix-up: the code would go to the one with which it was not begun."""
    guarded.answer = {"iss": iss}

    connect(dora, "acme")

    assert (guarded.grants, ServerCredential.objects.count()) == ([], 0)
    assert len(rejections()) == 1


@pytest.mark.parametrize("name", ["code", "state", "iss"])
def test_an_answer_with_a_parameter_twice_is_not_taken(
    acme: Server, guarded: Guarded, dora: User, name: str
) -> None:
    """Who looks at the first one, and who at the last, would see different issuers."""
    client = browser(dora)
    back = at_authorization_server(to_there(client, "acme"), "dora")

    client.get(back.replace("?", f"?{name}=https%3A%2F%2Fevil.example.org&"))

    assert (guarded.grants, ServerCredential.objects.count()) == ([], 0)
    assert rejections() == ["The answer has a parameter twice. Begin again."]


def test_a_code_goes_to_no_authorization_server_that_the_server_named_meanwhile(
    acme: Server, guarded: Guarded, dora: User
) -> None:
    client = browser(dora)
    back = at_authorization_server(to_there(client, "acme"), "dora")
    ServerClient.objects.update(issuer="https://evil.example.org")

    client.get(back)

    assert guarded.grants == []
    assert len(rejections()) == 1


INWARD = [
    "http://169.254.169.254/latest",
    "http://10.0.0.1/token",
    "https://10.0.0.1/token",
    "http://[::ffff:169.254.169.254]/token",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "ftp://example.com/token",
    "https://user:secret@example.com/token",
    "http://example.com/token",
]


@pytest.mark.long
@pytest.mark.parametrize("url", INWARD)
@pytest.mark.parametrize(
    "name", ["authorization_endpoint", "token_endpoint", "registration_endpoint"]
)
def test_endpoints_that_lead_elsewhere_are_not_used(
    acme: Server, guarded: Guarded, dora: User, name: str, url: str
) -> None:
    guarded.metadata = {name: url}

    response = browser(dora).post("/connections/acme/connect/", follow=True)

    assert name in response.text
    assert guarded.grants == []


@pytest.mark.parametrize(
    ("resource", "metadata"),
    [
        ({"resource": "https://other.example.org/mcp"}, {}),
        ({"authorization_servers": ["http://169.254.169.254"]}, {}),
        ({"authorization_servers": ["file:///etc"]}, {}),
        ({}, {"issuer": "https://other.example.org"}),
        ({}, {"code_challenge_methods_supported": ["plain"]}),
        ({}, {"code_challenge_methods_supported": None}),
        ({}, {"token_endpoint": None}),
    ],
)
def test_documents_that_cannot_be_trusted_begin_no_sign_in(
    acme: Server, guarded: Guarded, dora: User, resource: Any, metadata: Any
) -> None:
    guarded.resource, guarded.metadata = resource, metadata

    response = browser(dora).post("/connections/acme/connect/")

    assert response.status_code == 302
    assert guarded.grants == []


@pytest.mark.parametrize(
    "resource",
    [
        {"resource": "http://[::1"},
        {"resource": "MCP?x=\0"},
        {"resource": f"MCP?x={'y' * 3000}"},
        {"authorization_servers": ["http://[::1"]},
        {"authorization_servers": ["ISSUER/\0"]},
        {"authorization_servers": [f"ISSUER/{'y' * 3000}"]},
    ],
)
def test_an_address_that_is_none_begins_no_sign_in(
    acme: Server, guarded: Guarded, dora: User, resource: Any
) -> None:
    text = json.dumps(resource).replace("MCP", guarded.url).replace("ISSUER", guarded.issuer)
    guarded.resource = json.loads(text)

    page = browser(dora).post("/connections/acme/connect/", follow=True)

    assert "is not a URL" in page.text
    assert guarded.grants == []


@pytest.mark.parametrize(
    ("resource", "metadata"),
    [
        ({"scopes_supported": 3}, {"scopes_supported": 3}),
        ({"scopes_supported": ["a\0b", "y" * 300, 1]}, {"scopes_supported": ["a\0b"]}),
        ({}, {"token_endpoint_auth_methods_supported": 7}),
        ({}, {"token_endpoint_auth_methods_supported": ["none", {}, "\0"]}),
    ],
)
def test_lists_that_are_none_are_absent(
    acme: Server, guarded: Guarded, dora: User, resource: Any, metadata: Any
) -> None:
    guarded.resource, guarded.metadata = resource, metadata

    connect(dora, "acme")

    assert ServerCredential.objects.get().person == dora
    client = ServerClient.objects.get()
    assert client.named_scopes == ([] if resource else ["use"])
    assert client.metadata.get("scopes_supported", []) == []


def test_a_client_id_that_cannot_be_stored_is_none(
    acme: Server, guarded: Guarded, dora: User
) -> None:
    guarded.numbers = iter(["a\0b"])  # type: ignore[assignment]

    page = browser(dora).post("/connections/acme/connect/", follow=True)

    assert "gave no client ID" in page.text


def test_a_public_server_leads_into_no_network_of_the_installation(settings: Any) -> None:
    settings.UPSTREAM_NETWORKS = ["127.0.0.0/8"]

    assert authorization_server.networks_for("https://mcp.example.com/mcp") == ()
    assert authorization_server.networks_for("http://127.0.0.1:1/mcp") == ["127.0.0.0/8"]


@pytest.mark.parametrize("is_own", [True, False])
def test_a_server_with_a_name_in_a_network_of_the_installation_leads_there(
    settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_own: bool
) -> None:
    """As the guard of its calls: the sign-in would be the only thing that does not work. But not
    by its name alone, which may lead inside only while that is looked at."""
    settings.UPSTREAM_NETWORKS = ["127.0.0.0/8"]
    for name in ("ours", "other"):
        (tmp_path / name).mkdir()
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    monkeypatch.setenv("SSL_CERT_FILE", str(ours.file))
    connection_pool._tls.cache_clear()
    asked = socket.getaddrinfo

    def found(host: Any, *about: Any, **named: Any) -> Any:
        here = "127.0.0.1" if host == "mcp.corp.example" else host
        return asked(here, *about, **named)

    monkeypatch.setattr(socket, "getaddrinfo", found)
    with DocumentHost((ours if is_own else other).server("mcp.corp.example")) as host:
        there = host.url.replace("localhost", "mcp.corp.example")
        networks = authorization_server.networks_for(f"{there}/mcp")
    connection_pool._tls.cache_clear()

    assert networks == (["127.0.0.0/8"] if is_own else ())


@pytest.mark.parametrize(
    "addresses",
    [["10.1.2.3", "93.184.215.14"], ["10.1.2.3", "192.168.0.1"], ["93.184.215.14"], []],
)
def test_a_server_with_a_name_elsewhere_leads_into_no_network_of_the_installation(
    settings: Any, monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    settings.UPSTREAM_NETWORKS = ["10.0.0.0/8"]

    async def found(host: str) -> list[str]:
        assert host == "mcp.corp.example"
        return addresses

    monkeypatch.setattr(guarded_http, "_addresses", found)

    assert authorization_server.networks_for("https://mcp.corp.example/mcp") == ()


CHANGED = "The server's sign-in was changed in the meantime. Begin again."


def aside(work: Callable[[], Result]) -> Result:
    """Its result on a connection of its own, which is closed."""
    try:
        return work()
    finally:
        db.connection.close()


def waits_for_a_row() -> bool:
    with db.connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return bool(cursor.fetchone()[0])


@pytest.mark.parametrize("mode", [Server.SignIn.KEY, ""])
def test_a_key_that_is_saved_while_an_operator_sets_the_sign_in_anew_is_not_kept(
    acme: Server, olga: User, dora: User, mode: str
) -> None:
    set_up(acme, Server.SignIn.KEY, header="X-Key", by=olga)
    client = browser(dora)
    there, form = "/connections/acme/connect/", {"key": "a key of hers"}

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            set_up(acme, mode, header="X-Other", by=olga)
            saving = pool.submit(aside, partial(client.post, there, form, follow=True))
            wait_until(waits_for_a_row, seconds=15)
        page = saving.result()

    assert page.redirect_chain
    assert CHANGED in html.unescape(page.text)
    assert not ServerCredential.objects.exists()


def test_a_call_whose_sign_in_is_taken_away_meanwhile_lacks_its_credential(
    acme: Server, olga: User, dora: User
) -> None:
    """It may read its key before an operator takes the sign-in away, and the header after."""
    set_up(acme, Server.SignIn.KEY, header="X-Key", by=olga)
    browser(dora).post("/connections/acme/connect/", {"key": "a key of hers"})
    row = ServerCredential.objects.get()
    ServerClient.objects.all().delete()

    with pytest.raises(credential_store.CredentialMissing):
        credential_store.current(acme.pk, row.owner)
    with pytest.raises(credential_store.CredentialMissing):
        credential_store.renew(row.pk, row.generation)


@pytest.mark.parametrize("mode", [Server.SignIn.PERSON, ""])
def test_a_registration_while_an_operator_sets_the_sign_in_anew_brings_nothing_back(
    acme: Server, guarded: Guarded, olga: User, dora: User, mode: str
) -> None:
    def registered() -> Iterator[str]:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(aside, partial(set_up, acme, mode, by=olga)).result()
        yield "meanwhile"

    guarded.numbers = registered()  # type: ignore[assignment]

    page = browser(dora).post("/connections/acme/connect/", follow=True)

    assert page.redirect_chain
    assert CHANGED in html.unescape(page.text)
    assert [one.client_id for one in ServerClient.objects.all()] == ([""] if mode else [])


def test_a_given_secret_goes_to_no_other_issuer(guarded: Guarded, olga: User) -> None:
    server = services.register("acme", transport="http", url=guarded.url, owner=olga, by=olga)
    set_up(server, Server.SignIn.PERSON, by=olga, client_id="given", client_secret="ours")
    ServerClient.objects.update(issuer="https://first.example.org")

    with pytest.raises(SignInFailed, match="another authorization server"):
        clients.prepared(server)


def test_where_clients_are_known_by_document_none_is_registered(
    acme: Server, guarded: Guarded, settings: Any
) -> None:
    settings.PUBLIC_URL = "https://gate.example.com"
    guarded.metadata = {"client_id_metadata_document_supported": True}

    made = clients.prepared(acme)

    assert made.client_id == f"https://gate.example.com/connections/client/{acme.pk}.json"
    assert guarded.clients == {}
    document = json.loads(Client().get(urlsplit(made.client_id).path).content)
    assert document["client_id"] == made.client_id
    assert document["redirect_uris"] == [
        f"https://gate.example.com/connections/callback/{acme.pk}/"
    ]


def test_a_sealed_credential_opens_in_no_other_row(
    acme: Server, guarded: Guarded, dora: User
) -> None:
    """Whoever can write to the database cannot make one person's calls carry another's token."""
    erin = person("erin", Role.VIEWER)
    connect(dora, "acme")
    connect(erin, "acme")
    first, second = ServerCredential.objects.order_by("pk")

    ServerCredential.objects.filter(pk=second.pk).update(sealed=first.sealed)

    with pytest.raises(credential_store.CredentialMissing):
        credential_store.current(acme.pk, of(erin))


def test_one_person_never_gets_anothers(acme: Server, guarded: Guarded, dora: User) -> None:
    connect(dora, "acme")

    with pytest.raises(credential_store.CredentialMissing):
        credential_store.current(acme.pk, of(person("erin", Role.VIEWER)))
    with pytest.raises(credential_store.CredentialMissing):
        credential_store.current(acme.pk, CredentialOwner())


@pytest.mark.long
def test_secrets_are_on_no_page_in_no_entry_and_in_no_column(
    acme: Server, guarded: Guarded, dora: User, olga: User
) -> None:
    connect(dora, "acme")
    secrets = secrets_of(guarded)
    assert secrets
    pages = ["/connections/", urlsplit(links.page_of(acme, of(dora))).path, "/audit/"]
    seen = [browser(dora).get(path).text for path in pages]
    seen += [browser(olga).get(f"/servers/acme/{path}").text for path in ("", "edit/", "sign-in/")]
    seen += [str(vars(one)) for one in Entry.objects.all()]
    seen += [str(row) for row in ServerCredential.objects.values()]
    seen += [repr(credential_store.current(acme.pk, of(dora)))]

    assert not [one for one in secrets for text in seen if one in text]


def test_the_secret_of_the_installation_is_changed_with_them(
    acme: Server, guarded: Guarded, dora: User, settings: Any
) -> None:
    connect(dora, "acme")
    before = vault.open_values(ServerCredential.objects.get())
    settings.OLD_SECRET_KEYS, settings.SECRET_KEY = [settings.SECRET_KEY], "another " * 8
    seal.key.cache_clear()
    seal._old_keys.cache_clear()
    try:
        with transaction.atomic():
            assert [place for field in vault.SEALED for place in field.reseal()] == []
        assert vault.open_values(ServerCredential.objects.get()) == before
    finally:
        seal.key.cache_clear()
        seal._old_keys.cache_clear()


def test_what_is_revoked_is_waited_for_together_and_not_for_long(
    acme: Server,
    guarded: Guarded,
    olga: User,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Else an authorization server that hangs holds up whoever sets the sign-in anew."""
    for name in ("dora", "erin", "finn", "gwen"):
        connect(person(name, Role.VIEWER), "acme")
    begun, may_end = [], threading.Event()

    def hang(client: ServerClient, token: str, hint: str) -> bool:
        assert ServerClient.server.is_cached(client)
        begun.append(token)
        return may_end.wait(20)

    monkeypatch.setattr(token_endpoint, "revoke", hang)
    monkeypatch.setattr(credential_store, "REVOKED_WITHIN_S", 0.5)
    monkeypatch.setattr(credential_store, "REVOKED_AT_ONCE", 3)

    set_up(acme, Server.SignIn.SHARED, by=olga)

    assert not ServerCredential.objects.exists()
    assert len(begun) == 3
    may_end.set()
    assert "acme: 4 credentials were not revoked in time" in caplog.text


def test_tokens_are_revoked_at_no_other_issuer_than_theirs(
    acme: Server, guarded: Guarded, dora: User
) -> None:
    """A server that was taken over names its own authorization server: whoever disconnects after
    that must not hand over what the former one gave."""
    client = connect(dora, "acme")
    ServerClient.objects.update(issuer="https://evil.example.org")

    client.post("/connections/acme/disconnect/")

    assert not ServerCredential.objects.exists()
    assert guarded.revoked == []


def test_what_was_set_anew_while_a_code_was_redeemed_takes_no_token(
    acme: Server, guarded: Guarded, dora: User, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tokens would be sent to the new address."""
    redeem = token_endpoint.redeem

    def slow(*arguments: Any, **more: Any) -> Any:
        tokens = redeem(*arguments, **more)
        acme.refresh_from_db()
        services.set_connection(acme, url="http://127.0.0.1:9/mcp", by=olga)
        set_up(acme, Server.SignIn.PERSON, by=olga)
        return tokens

    monkeypatch.setattr(token_endpoint, "redeem", slow)

    connect(dora, "acme")

    assert not ServerCredential.objects.exists()


def test_what_is_disconnected_while_it_is_renewed_stays_so_and_is_revoked(
    acme: Server, guarded: Guarded, dora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(dora, "acme")
    row = ServerCredential.objects.get()
    refresh = token_endpoint.refresh

    def slow(*arguments: Any) -> Any:
        tokens = refresh(*arguments)
        client.post("/connections/acme/disconnect/")
        return tokens

    monkeypatch.setattr(token_endpoint, "refresh", slow)

    with pytest.raises(credential_store.CredentialMissing):
        credential_store.renew(row.pk, row.generation)

    assert not ServerCredential.objects.exists()
    assert (guarded.access, guarded.refresh) == ({}, {})


@pytest.mark.parametrize(
    ("said", "lasts_s"),
    [(3600, 3600), ("3600", 3600), ("1e3", None), ("", None), (None, None), (-5, None)],
)
def test_an_access_token_ends_when_its_authorization_server_says(
    acme: Server, guarded: Guarded, dora: User, said: Any, lasts_s: int | None
) -> None:
    """Some say it as text."""
    guarded.lasts_s = said

    connect(dora, "acme")

    row = ServerCredential.objects.get()
    lasts = row.expires_at and row.expires_at - row.connected_at
    assert (lasts and round(lasts / timedelta(minutes=1))) == (lasts_s and lasts_s / 60)


def test_what_is_disconnected_before_its_renewal_is_answered_has_no_end_to_record(
    acme: Server, guarded: Guarded, dora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its refresh token is revoked then. Any other error would leave the call's outcome unknown."""
    client = connect(dora, "acme")
    row = ServerCredential.objects.get()
    refresh = token_endpoint.refresh

    def late(*arguments: Any) -> Any:
        client.post("/connections/acme/disconnect/")
        return refresh(*arguments)

    monkeypatch.setattr(token_endpoint, "refresh", late)

    with pytest.raises(TokenRejected):
        credential_store.renew(row.pk, row.generation)

    assert not Entry.objects.filter(action="credential.ended").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, b'{"error": "invalid_client"}'),
        (400, b'{"error": "temporarily_unavailable"}'),
        (400, b"<h1>Bad gateway</h1>"),
        (503, b""),
    ],
)
def test_no_credential_is_ended_by_an_error_that_is_not_about_it(
    acme: Server,
    guarded: Guarded,
    dora: User,
    status: int,
    said: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a client secret that expired, or a proxy, would take the refresh tokens of everybody."""
    connect(dora, "acme")
    row = ServerCredential.objects.get()
    monkeypatch.setattr(guarded, "wrong", (status, said))

    with pytest.raises(SignInFailed):
        credential_store.renew(row.pk, row.generation)

    row.refresh_from_db()
    assert row.ended == ""
    assert vault.open_values(row)["refresh"] in guarded.refresh


def test_the_account_of_the_installation_is_connected_by_no_one_who_may_no_longer(
    acme: Server, guarded: Guarded, olga: User
) -> None:
    set_up(acme, Server.SignIn.SHARED, by=olga)
    client = browser(olga)
    page = client.post("/servers/acme/sign-in/connect/").text
    there = page.split('class="button primary wide" href="')[1].split('"')[0].replace("&amp;", "&")
    olga.groups.clear()

    client.get(at_authorization_server(there, "mallory"))

    assert (guarded.grants, ServerCredential.objects.count()) == ([], 0)
    assert len(rejections()) == 1


def test_a_header_for_everybody_does_not_go_beside_a_persons_own(
    acme: Server, guarded: Guarded, dora: User, olga: User
) -> None:
    connect(dora, "acme")
    acme.refresh_from_db()
    services.set_connection(
        acme, url=guarded.url, headers={"authorization": "Basic shared", "X-More": "1"}, by=olga
    )
    acme.refresh_from_db()
    opened = credential_store.current(acme.pk, of(dora))

    reached = connection(acme, Commands()).with_credential(opened.row, opened.headers)

    assert reached.headers == {"X-More": "1", **opened.headers}


@pytest.mark.long
@pytest.mark.parametrize("at", ["evil", "honest"])
def test_a_server_gets_no_code_of_another_whose_authorization_server_is_silent_about_itself(
    acme: Server, guarded: Guarded, dora: User, olga: User, at: str
) -> None:
    """Mix-up: whoever signs in at the hostile server is sent on to the honest one's authorization
    server, with the hostile server's state and challenge. The code that comes back would go to the
    hostile one, with the verifier that belongs to it. Source: RFC 9700, 4.4.1."""
    connect(dora, "acme")
    honest = ServerClient.objects.get(server=acme)
    guarded.metadata = {"authorization_response_iss_parameter_supported": False}
    guarded.answer = {"iss": None}
    with Guarded() as hostile:
        hostile.metadata = guarded.metadata
        evil = services.register("evil", transport="http", url=hostile.url, owner=olga, by=olga)
        set_up(evil, Server.SignIn.PERSON, by=olga)
        client = browser(dora)
        asked = dict(parse_qsl(urlsplit(to_there(client, "evil")).query))
        asked |= {"client_id": honest.client_id, "resource": honest.resource}
        if at == "honest":
            asked["redirect_uri"] = clients.redirect_uri(acme.pk)
        there = f"{honest.metadata['authorization_endpoint']}?{urlencode(asked)}"

        client.get(at_authorization_server(there, "dora"))

        assert hostile.grants == []
    assert len(rejections()) == (at == "honest")


@pytest.mark.parametrize("letters", ["a" * 8000, "a" * 4000 + " " * 4000, 'a="' * 2600])
def test_no_challenge_holds_up_the_calls_of_others(letters: str) -> None:
    began = time.perf_counter()

    authorization_server.params_of(f"Bearer {letters}")

    assert time.perf_counter() - began < 0.2


@dataclass
class Hanging(Guarded):
    """Gives no token while `go` is not set."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.asked, self.go = threading.Semaphore(0), threading.Event()
        self.go.set()

    def __exit__(self, *error: object) -> None:
        self.go.set()
        super().__exit__(*error)

    async def _token(self, form: dict[str, str], scope: Any, send: Any) -> None:
        self.asked.release()
        while not self.go.is_set():
            await asyncio.sleep(0.01)
        await super()._token(form, scope, send)


async def test_an_authorization_server_that_hangs_holds_up_no_other_servers_calls(
    acme: Server, olga: User, dora: User
) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    erin, credentials = await sync_to_async(person)("erin", Role.VIEWER), CallCredentials()
    with Hanging() as hanging:
        slow = await sync_to_async(services.register)(
            "slow", transport="http", url=hanging.url, owner=olga, by=olga
        )
        await sync_to_async(set_up)(slow, Server.SignIn.PERSON, by=olga)
        for who, slug in ((dora, "slow"), (erin, "slow"), (olga, "slow"), (dora, "acme")):
            await sync_to_async(connect)(who, slug)
        late = ServerCredential.objects.filter(server=slow).exclude(person=olga)
        await late.aupdate(expires_at=timezone.now())
        hanging.go.clear()
        hanging.asked = threading.Semaphore(0)

        renewing = [
            asyncio.create_task(credentials.current(at(slow), of(who))) for who in (dora, erin)
        ]
        assert await asyncio.to_thread(hanging.asked.acquire, timeout=10)
        assert await asyncio.to_thread(hanging.asked.acquire, timeout=10)
        async with asyncio.timeout(5):
            others = [await credentials.current(at(acme), of(dora))]
            others += [await credentials.current(at(slow), of(olga))]

        hanging.go.set()
        assert [one.row.generation for one in others] == [1, 1]
        assert [one.row.generation for one in await asyncio.gather(*renewing)] == [2, 2]


def at(server: Server) -> ServerConnection:
    return connection(server, Commands())


def test_sign_ins_at_a_server_that_hangs_hold_up_no_page(olga: User) -> None:
    """All threads of a process share ten connections to the database."""
    with ThreadPoolExecutor(12) as pool, Hanging() as hanging:
        slow = services.register("slow", transport="http", url=hanging.url, owner=olga, by=olga)
        set_up(slow, Server.SignIn.PERSON, by=olga)
        browsers = [browser(person(f"user-{n}", Role.VIEWER)) for n in range(12)]
        ways = [at_authorization_server(to_there(one, "slow"), "x") for one in browsers]
        hanging.go.clear()

        signing_in = [
            pool.submit(aside, partial(one.get, way))
            for one, way in zip(browsers, ways, strict=True)
        ]
        for _ in browsers:
            assert hanging.asked.acquire(timeout=8)
        assert browser(olga).get("/servers/").status_code == 200

        hanging.go.set()
        assert [one.result().status_code for one in signing_in] == [302] * 12


async def test_without_the_database_a_call_is_known_not_to_be_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else its outcome would count as unknown, and somebody would have to find it out."""

    def away(*arguments: Any) -> Any:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(credential_store, "find", away)
    server = ServerConnection("acme", "http", signs_in=1, credential_of="person")

    with pytest.raises(RecordUnavailable):
        await CallCredentials().current(server, CredentialOwner("person", 1))
