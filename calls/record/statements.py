"""The canonical statement that a waiting call is bound to, known by its digest.

What people decide on is this statement. It is written when the call is opened, and again from what
is about to be sent when the call is claimed; the two must be the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson
import rfc8785

from core.english import gettext
from core.english import gettext as _
from registry.connections import SHARED
from registry.models import CredentialOwner
from registry.publishing.published_tools import PublishedTool

# A later form of the statement gets another tag: digests of two forms never meet.
DOMAIN = b"countersign call 1\n"

NAMES = {
    "agent": gettext("the agent"),
    "person": gettext("the person on whose behalf"),
    "server": gettext("the server's address"),
    "credential": gettext("the server's credential or settings"),
    "tool": gettext("the tool"),
    "definition": gettext("the tool's definition"),
    "arguments": gettext("the arguments"),
}


def statement(
    *,
    agent: tuple[int, str],
    person: tuple[int, str],
    tool: PublishedTool,
    arguments: bytes,
    credential_owner: CredentialOwner = SHARED,
) -> str:
    """RFC 8785 canonical JSON of who sends what to whom."""
    connection = tool.connection
    server = {"name": tool.server_slug, "transport": connection.transport}
    return rfc8785.dumps(
        {
            "agent": {"id": agent[0], "name": agent[1]},
            "person": {"id": person[0], "name": person[1]},
            "server": server | {"url": connection.url, "argv": list(connection.argv)},
            # Keyed, so that it says whether the secret is the same and nothing about it.
            "credential": connection.key + _of_team(credential_owner),
            "tool": {"name": tool.name, "exposed": tool.exposed_name},
            "definition": tool.digest,
            "arguments": hashlib.sha256(arguments).hexdigest(),
        }
    ).decode()


def _of_team(owner: CredentialOwner) -> str:
    """Person and agent are members of their own."""
    return f" {owner.mark}" if owner.kind == "team" else ""


def with_arguments(statement: str, arguments: bytes) -> str:
    """The same in all but the arguments."""
    members = {**_members(statement), "arguments": hashlib.sha256(arguments).hexdigest()}
    return rfc8785.dumps(members).decode()


def call_digest(statement: str) -> str:
    return hashlib.sha256(DOMAIN + statement.encode()).hexdigest()


def differences(decided: str, now: str) -> list[str]:
    """The members in which two statements differ, in words."""
    try:
        before, after = _members(decided), _members(now)
    except ValueError:
        # Nothing of ours wrote that.
        return [_("the statement itself")]
    return [str(name) for key, name in NAMES.items() if before.get(key) != after.get(key)]


def _members(statement: str) -> Mapping[str, Any]:
    members = orjson.loads(statement)
    if not isinstance(members, dict):
        raise ValueError("no statement")
    return members
