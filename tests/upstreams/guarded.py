"""An MCP server that wants an access token, with its authorization server at the same address.

The authorization server lets in whoever the browser says that it is (`login`), and every answer of
both can be made a hostile one.
"""

import base64
import hashlib
import itertools
import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.upstreams.recorder import Received, Recorder, respond


@dataclass
class Issued:
    login: str
    scope: str
    expires_at: float = float("inf")
    is_valid: bool = True


@dataclass
class Guarded(Recorder):
    # Members that the documents have in place of the right ones.
    resource: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    # Parameters of the answer to the browser, likewise.
    answer: dict[str, Any] = field(default_factory=dict)
    # In seconds; or what else it says of that.
    lasts_s: Any = 3600
    # The seconds before a token is renewed.
    slow_s: float = 0
    # By tool, the scope that its calls need.
    needs: dict[str, str] = field(default_factory=dict)
    # Status and body that every refresh is answered with instead.
    wrong: tuple[int, bytes] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._lock = threading.Lock()
        self.forget()

    def reset(self) -> None:
        super().reset()
        self.forget()

    def forget(self) -> None:
        self.numbers = itertools.count(1)
        self.codes: dict[str, dict[str, str]] = {}
        self.access: dict[str, Issued] = {}
        self.refresh: dict[str, Issued] = {}
        self.clients: dict[str, dict[str, Any]] = {}
        # What was asked of the token endpoint, by grant, and revoked.
        self.grants: list[dict[str, str]] = []
        self.revoked: list[str] = []
        # Who called, by their tokens, and how often a call was turned away.
        self.callers: list[tuple[str, str]] = []
        self.turned_away = self.lacking = 0
        self.resource, self.metadata, self.answer = {}, {}, {}
        self.lasts_s, self.slow_s, self.needs = 3600, 0, {}
        self.wrong = None

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/mcp":
            await self._guard(scope, receive, send)
            return
        body = (await receive())["body"].decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        query = {n: v[0] for n, v in parse_qs(scope["query_string"].decode()).items()}
        match scope["path"]:
            case "/.well-known/oauth-protected-resource/mcp":
                said = {"resource": self.url, "authorization_servers": [self.issuer]}
                await _json(send, said | {"scopes_supported": ["use"]} | self.resource)
            case "/.well-known/oauth-authorization-server":
                await _json(send, self._metadata())
            case "/authorize":
                await self._authorize(query, send)
            case "/register":
                client = f"client-{next(self.numbers)}"
                self.clients[client] = json.loads(body)
                await _json(send, {"client_id": client}, status=201)
            case "/token":
                await self._token(form, scope, send)
            case "/revoke":
                self._revoke(form["token"])
                await respond(send, b"")
            case _:
                await respond(send, b"{}", status=404)

    def expire(self, *, refused_only: bool = False) -> None:
        """All access tokens are refused from now on."""
        for one in self.access.values():
            one.is_valid = False

    async def _guard(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        shown = headers.get("authorization", "").removeprefix("Bearer ")
        token = self.access.get(shown)
        name = headers.get("mcp-name", "")
        if token is None or not token.is_valid or token.expires_at < time.time():
            await _drain(receive)
            self.turned_away += "mcp-name" in headers
            await self._challenge(send, 401, 'error="invalid_token"' if shown else "")
            return
        if (needed := self.needs.get(name)) and needed not in token.scope.split():
            await _drain(receive)
            self.lacking += "mcp-name" in headers
            await self._challenge(send, 403, f'error="insufficient_scope", scope="{needed}"')
            return
        if "mcp-name" in headers:
            self.callers.append((token.login, name))
        await super().app(scope, receive, send)

    async def _challenge(self, send: Any, status: int, more: str) -> None:
        place = f"{self.issuer}/.well-known/oauth-protected-resource/mcp"
        said = f'Bearer resource_metadata="{place}"' + (f", {more}" if more else "")
        headers = [(b"www-authenticate", said.encode()), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    def _metadata(self) -> dict[str, Any]:
        names = ("authorization", "token", "revocation", "registration")
        paths = dict(zip(names, ("authorize", "token", "revoke", "register"), strict=True))
        said: dict[str, Any] = {f"{n}_endpoint": f"{self.issuer}/{p}" for n, p in paths.items()}
        said |= {"issuer": self.issuer, "code_challenge_methods_supported": ["S256"]}
        said |= {"token_endpoint_auth_methods_supported": ["none", "client_secret_basic"]}
        said |= {"authorization_response_iss_parameter_supported": True}
        return said | self.metadata

    async def _authorize(self, query: dict[str, str], send: Any) -> None:
        known = self.clients.get(query["client_id"], {}).get("redirect_uris")
        if known is not None and query["redirect_uri"] not in known:
            await _json(send, {"error": "invalid_request"}, status=400)
            return
        code = f"code-{next(self.numbers)}"
        self.codes[code] = query
        back = {"code": code, "state": query["state"], "iss": self.issuer} | self.answer
        back = {name: value for name, value in back.items() if value is not None}
        place = f"{query['redirect_uri']}?{urlencode(back)}".encode()
        await send(
            {"type": "http.response.start", "status": 302, "headers": [(b"location", place)]}
        )
        await send({"type": "http.response.body", "body": b""})

    async def _token(self, form: dict[str, str], scope: Any, send: Any) -> None:
        with self._lock:
            self.grants.append(form)
        if self.wrong and "refresh_token" in form:
            await respond(send, self.wrong[1], status=self.wrong[0])
            return
        granted = self._redeem(form) if "code" in form else await self._renew(form)
        if granted is None:
            await _json(send, {"error": "invalid_grant"}, status=400)
            return
        await _json(send, self._issue(granted))

    def _redeem(self, form: dict[str, str]) -> Issued | None:
        asked = self.codes.pop(form["code"], None)
        if asked is None:
            return None
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        same = ("redirect_uri", "client_id", "resource")
        if challenge != asked["code_challenge"] or any(form[n] != asked[n] for n in same):
            return None
        return Issued(asked.get("login", "nobody"), asked.get("scope", ""))

    async def _renew(self, form: dict[str, str]) -> Issued | None:
        if self.slow_s:
            import asyncio

            await asyncio.sleep(self.slow_s)
        with self._lock:
            # Rotated: the one before is good once.
            found = self.refresh.pop(form["refresh_token"], None)
        return found if found is not None and found.is_valid else None

    def _issue(self, to: Issued) -> dict[str, Any]:
        number = next(self.numbers)
        access, refresh = f"access-{number}-secret", f"refresh-{number}-secret"
        lasts_s = self.lasts_s if isinstance(self.lasts_s, int | float) else 3600
        self.access[access] = Issued(to.login, to.scope, time.time() + lasts_s)
        self.refresh[refresh] = Issued(to.login, to.scope)
        said = {"access_token": access, "refresh_token": refresh, "token_type": "Bearer"}
        return said | {"expires_in": self.lasts_s, "scope": to.scope}

    def _revoke(self, token: str) -> None:
        self.revoked.append(token)
        for known in (self.access, self.refresh):
            known.pop(token, None)


async def _json(send: Any, said: dict[str, Any], *, status: int = 200) -> None:
    await respond(send, json.dumps(said).encode(), status=status)


async def _drain(receive: Any) -> None:
    while (await receive()).get("more_body"):
        pass


def secrets_of(server: Guarded) -> list[str]:
    """All that must not be seen anywhere."""
    return [*server.access, *server.refresh, *server.codes]


__all__ = ["Guarded", "Received", "secrets_of", "urlsplit"]
