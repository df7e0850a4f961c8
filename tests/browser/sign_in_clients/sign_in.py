"""The official Python SDK's client, which signs in by itself.

python sign_in.py URL REDIRECT [DOCUMENT]: prints {"open": …}, reads the address to which the
browser came back, and prints the tools that it then sees.
"""

import asyncio
import json
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)

URL, REDIRECT, DOCUMENT = [*sys.argv[1:], ""][:3]


class Kept(TokenStorage):
    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

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


async def visit(url: str) -> None:
    say(open=url)


async def come_back() -> AuthorizationCodeResult:
    there = await asyncio.to_thread(sys.stdin.readline)
    given = {name: values[0] for name, values in parse_qs(urlsplit(there.strip()).query).items()}
    return AuthorizationCodeResult(**given)


async def main() -> None:
    kept = Kept()
    described = {"redirect_uris": [REDIRECT], "client_name": "Python SDK"}
    provider = OAuthClientProvider(
        URL,
        OAuthClientMetadata.model_validate(described),
        kept,
        visit,
        come_back,
        client_metadata_url=DOCUMENT or None,
    )
    async with (
        httpx2.AsyncClient(auth=provider) as web,
        Client(streamable_http_client(URL, http_client=web)) as client,
    ):
        tools = (await client.list_tools()).tools
    assert kept.client
    say(tools=[tool.name for tool in tools], client_id=kept.client.client_id)


asyncio.run(main())
