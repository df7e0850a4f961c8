"""A service account's program, which knows the API and nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.test import Client

from accounts import service_accounts
from accounts.models import User
from accounts.service_accounts import SCOPES
from tests.accounts import service_tokens


@dataclass
class Program:
    token: str
    under: str = "/api/v1/"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """`headers`: with _ for -."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            named["Authorization"] = f"Bearer {self.token}"
        sent: dict[str, Any] = {} if body is None else {"data": json.dumps(body)}
        return Client().generic(
            method, f"{self.under}{path}", content_type="application/json", headers=named, **sent
        )

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status_code == 200, answer.content
        return answer.json()

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        answer = self.ask("POST", path, {} if body is None else body, **headers)
        assert answer.status_code in (200, 201, 202), answer.content
        return answer.json()

    def change(self, path: str, body: Any = None, method: str = "PATCH") -> Any:
        """Of the version that is there now."""
        tag = self.ask("GET", path)["ETag"]
        answer = self.ask(method, path, body, If_Match=tag)
        assert answer.status_code in (200, 204), answer.content
        return answer.json() if answer.content else None


def program(name: str, by: User, *scopes: str) -> Program:
    account = service_accounts.create(name, purpose="A test", scopes=scopes or SCOPES, by=by)
    return Program(service_tokens.issue(account, by=by))
