"""Our client towards servers that are signed in at, as the conformance suite drives it.

Run by the suite as `python -m tests.conformance.signing_client URL`, on the test's database: an
operator registers the server, a person connects by the console's pages, and consents again where
the server asks for more.
"""

import asyncio
import html
import json
import os
import re
import sys
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import setup_test_environment  # noqa: E402

from accounts.models import User  # noqa: E402
from accounts.roles import Role  # noqa: E402
from registry import services  # noqa: E402
from registry.connections import Commands, connection  # noqa: E402
from registry.credentials import clients, credential_store  # noqa: E402
from registry.credentials.authorization_server import params_of  # noqa: E402
from registry.models import Server  # noqa: E402
from registry.upstream import (  # noqa: E402
    Limits,
    NotGreeted,
    RefusedByServer,
    Target,
    UpstreamCall,
    Upstreams,
)
from tests.conftest import person  # noqa: E402

# So often a person consents anew before they give up.
CONSENTS = 3


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any) -> None:
        """Leaves the redirect to who asked."""


def main(url: str) -> None:
    # So that pages say what they were drawn with.
    setup_test_environment()
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    settings.PUBLIC_URL, settings.ALLOWED_HOSTS = "https://gate.example.com", ["*"]
    bob = person("bob", Role.OPERATOR)
    server = services.register("suite", transport="http", url=url, owner=bob, by=bob)
    given = {name: context[name] for name in ("client_id", "client_secret") if name in context}
    clients.set_sign_in(server, Server.SignIn.PERSON, by=bob, **given)
    for _consent in range(CONSENTS):
        connect(bob)
        if asyncio.run(use(Server.objects.get())):
            return


def connect(bob: User) -> None:
    """As in a browser."""
    client = Client(headers={"host": "gate.example.com"})
    client.force_login(bob)
    page = client.post("/connections/suite/connect/", secure=True, follow=True)
    found = re.search(r'class="button primary wide" href="([^"]+)"', page.text)
    assert found is not None, [str(one) for one in page.context["messages"]]
    try:
        urllib.request.build_opener(NoRedirect).open(html.unescape(found[1]))
    except urllib.error.HTTPError as answer:
        back = urlsplit(answer.headers["Location"])
    answered = client.get(f"{back.path}?{back.query}", secure=True, follow=True)
    said = [str(one) for one in answered.context["messages"]]
    assert "“suite” is connected." in said, said


async def use(server: Server) -> bool:
    """False where a person has to consent to more."""
    upstreams = Upstreams(networks=settings.UPSTREAM_NETWORKS)
    found = await asyncio.to_thread(credential_store.for_discovery, server)
    reached = connection(server, Commands()).with_credential(found.row, found.headers)
    target = Target(key=reached.key, transport="http", url=reached.url, headers=reached.headers)
    try:
        for tool in (await upstreams.discover(target)).tools:
            call = UpstreamCall(name=tool["name"], arguments=b"{}", limits=Limits(total_s=20))
            await upstreams.call_tool(target, call)
    except (RefusedByServer, NotGreeted) as error:
        said = params_of(error.challenge)
        await asyncio.to_thread(credential_store.want_scopes, found.row, said.get("scope", ""))
        return False
    finally:
        await upstreams.aclose()
    return True


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except AssertionError as error:
        # Whether it was right to give up, the suite says.
        sys.stderr.write(f"{error}\n")
