"""The official Python SDK's client, for which a company's provider allows the sign-in.

python by_id_jag.py URL CLIENT_ID ISSUER: prints {"audience", "resource"}, reads an ID-JAG for
these, and prints the tools.
"""

import asyncio
import json
import sys
from typing import Any

import httpx2
from mcp import Client
from mcp.client.auth import TokenStorage
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

URL, CLIENT_ID, ISSUER = sys.argv[1:]


class Kept(TokenStorage):
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def say(**said: Any) -> None:
    sys.stdout.write(f"{json.dumps(said)}\n")
    sys.stdout.flush()


async def fetch_id_jag(audience: str, resource: str) -> str:
    say(audience=audience, resource=resource)
    line: str = await asyncio.to_thread(sys.stdin.readline)
    return line.strip()


async def main() -> None:
    provider = IdentityAssertionOAuthProvider(
        server_url=URL,
        storage=Kept(),
        client_id=CLIENT_ID,
        client_secret="it has none",
        issuer=ISSUER,
        assertion_provider=fetch_id_jag,
    )
    async with (
        httpx2.AsyncClient(auth=provider) as web,
        Client(streamable_http_client(URL, http_client=web)) as client,
    ):
        tools = (await client.list_tools()).tools
    say(tools=[tool.name for tool in tools])


asyncio.run(main())
