"""A person who connects their account at a guarded server, by the pages and in a plain browser."""

import html
import http.client
import re
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.test import Client

from accounts.models import User
from registry.credentials import clients
from registry.models import CredentialOwner, Server
from tests.upstreams.guarded import Guarded


def of(person: User) -> CredentialOwner:
    return CredentialOwner("person", person.pk, person.username)


def set_up(server: Server, mode: str, *, by: User, **more: Any) -> None:
    clients.set_sign_in(server, mode, by=by, **more)


def to_there(client: Client, slug: str) -> str:
    """The address at the authorization server to which the page leads."""
    response = client.post(f"/connections/{slug}/connect/", follow=True)
    said = [str(message) for message in response.context["messages"]]
    assert not response.redirect_chain, said
    found = re.search(r'class="button primary wide" href="([^"]+)"', response.text)
    assert found is not None
    return html.unescape(found[1])


def connect_owned(operator: User, slug: str, owner_id: int, *, login: str) -> Any:
    """An operator connects the account of a team or an agent, as `login` at the server."""
    client = Client()
    client.force_login(operator)
    page = client.post(f"/servers/{slug}/sign-in/connect/", {"owner": owner_id})
    found = re.search(r'class="button primary wide" href="([^"]+)"', page.text)
    assert found is not None, page.text
    return client.get(at_authorization_server(html.unescape(found[1]), login))


def at_authorization_server(there: str, login: str) -> str:
    """Where the browser is sent back to, as path and query."""
    place = urlsplit(there)
    connection = http.client.HTTPConnection(place.netloc, timeout=10)
    connection.request("GET", f"{place.path}?{place.query}&{urlencode({'login': login})}")
    back = urlsplit(connection.getresponse().headers["Location"] or "/")
    connection.close()
    return f"{back.path}?{back.query}"


def connect(person: User, slug: str, *, login: str = "") -> Client:
    """The person's browser afterwards."""
    client = Client()
    client.force_login(person)
    response = client.get(at_authorization_server(to_there(client, slug), login or person.username))
    assert response.status_code == 302
    return client


__all__ = [
    "Guarded",
    "at_authorization_server",
    "connect",
    "connect_owned",
    "of",
    "set_up",
    "to_there",
]
