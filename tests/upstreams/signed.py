"""`python -m tests.upstreams.signed PORT ISSUER`: an MCP server of the Python SDK that takes the
access tokens of one authorization server, and says for whom they are."""

import sys
from typing import Any

import jwt
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from pydantic import AnyHttpUrl


class Verifier:
    def __init__(self, issuer: str, resource: str) -> None:
        self.issuer, self.resource = issuer, resource
        self.keys = jwt.PyJWKClient(f"{issuer}/jwks")

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self.keys.get_signing_key_from_jwt(token),
                algorithms=["RS256"],
                audience=self.resource,
                issuer=self.issuer,
            )
        except jwt.PyJWTError:
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims.get("scope", "").split(),
            resource=self.resource,
            subject=claims["sub"],
        )


def made(port: int, issuer: str) -> MCPServer:
    resource = f"http://127.0.0.1:{port}/mcp"
    server = MCPServer(
        "signed",
        token_verifier=Verifier(issuer, resource),
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(issuer),
            resource_server_url=AnyHttpUrl(resource),
            required_scopes=["use"],
            validate_token_resource=True,
        ),
    )

    @server.tool()
    def whoami() -> str:
        """Names the account that the access token is for."""
        token = get_access_token()
        return str(token.subject if token else "nobody")

    return server


if __name__ == "__main__":
    made(int(sys.argv[1]), sys.argv[2]).run(
        transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1])
    )
