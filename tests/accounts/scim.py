"""A provider's side of SCIM, by Django's test client."""

import json
from dataclasses import dataclass, field
from typing import Any

from django.test import Client

from accounts.models import User
from accounts.oidc.providers import provider
from accounts.scim import tokens

PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
SEARCH = "urn:ietf:params:scim:api:messages:2.0:SearchRequest"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"


def scim_token(by: User, slug: str = "company") -> str:
    return tokens.issue(provider(slug), by=by, days=30)[1]


@dataclass
class Directory:
    """What a provider does with one token."""

    token: str
    client: Client = field(default_factory=Client)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.generic(
            method,
            f"/scim/v2{path}",
            b"" if body is None else text,
            content_type="application/scim+json",
            headers={"Authorization": f"Bearer {self.token}", **headers},
        )

    def made(self, path: str, **body: Any) -> dict[str, Any]:
        schema = USER if path == "/Users" else GROUP
        answer = self.ask("POST", path, {"schemas": [schema], **body})
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    def user(self, name: str, **more: Any) -> str:
        return str(self.made("/Users", userName=name, **more)["id"])

    def group(self, name: str, *members: str, **more: Any) -> str:
        told = [{"value": one} for one in members]
        return str(self.made("/Groups", displayName=name, members=told, **more)["id"])

    def patch(self, path: str, *operations: dict[str, Any]) -> Any:
        return self.ask("PATCH", path, {"schemas": [PATCH], "Operations": list(operations)})

    def set_active(self, user: str, active: bool) -> Any:
        said = {"op": "replace", "path": "active", "value": active}
        return self.patch(f"/Users/{user}", said)
