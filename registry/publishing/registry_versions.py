"""The entries of toolsets' MCP registries, one version after another.

Source: modelcontextprotocol/registry, docs/reference/api/openapi.yaml, ServerDetail and
RegistryExtensions; server.json 2025-12-11. An entry leads to our endpoint, never past it.
"""

from __future__ import annotations

import ipaddress
import re
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import orjson
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from core.english import gettext as _
from registry.models import RegistryReaders, RegistryVersion, Server, Toolset
from registry.publishing import published_catalogue
from registry.publishing.published_tools import PublishedToolset

Json = dict[str, Any]

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
LONGEST_TEXT = 100
# With a toolset of 64 and a server of 32 characters the name has 200 at most.
LONGEST_NAMESPACE = 100


def namespace() -> str:
    """The agents' address backwards: the domain that speaks for these servers."""
    host = urlsplit(settings.AGENT_URL).hostname or "localhost"
    try:
        ipaddress.ip_address(host)
    except ValueError:
        labels = re.sub(r"[^a-z0-9.-]", "-", host.lower()).strip(".").split(".")[::-1]
        while len(".".join(labels)) > LONGEST_NAMESPACE and len(labels) > 1:
            labels.pop()
        return ".".join(labels)[:LONGEST_NAMESPACE]
    return re.sub(r"[^a-z0-9.]", "-", host.lower())


def name_of(toolset: str, server: str) -> str:
    """Different in each toolset: each is another address."""
    return f"{namespace()}/{toolset}.{server}"


def refresh_all() -> None:
    served = Toolset.objects.exclude(registry_readers=RegistryReaders.NONE)
    if slugs := list(served.values_list("slug", flat=True)):
        catalogue = published_catalogue.load()
        for slug in slugs:
            refresh(slug, catalogue.toolset(slug))


@transaction.atomic
def refresh(slug: str, published: PublishedToolset | None) -> None:
    """Adds a version of each server that is offered otherwise than by its latest one, and ends
    those of servers that are offered no longer. Safe to repeat."""
    toolset = Toolset.objects.select_for_update().filter(slug=slug).first()
    if toolset is None or toolset.registry_readers == RegistryReaders.NONE:
        return
    definitions = _definitions(published) if published else {}
    offered = Server.objects.filter(slug__in=definitions)
    present = toolset.registry_versions.order_by("number")
    latest = {row.server_id: row for row in present}
    for server in offered:
        _add_version(toolset, server, definitions[server.slug], latest.get(server.pk))
    gone = present.filter(deleted_at=None).exclude(server__in=offered)
    gone.update(deleted_at=timezone.now())


def _definitions(published: PublishedToolset) -> dict[str, list[Json]]:
    """Definitions of tools as agents get them, by the server's name."""
    return {
        slug: [published.definition_for(name, tool) for name, tool in tools.items()]
        for slug, tools in published.by_server.items()
    }


def _add_version(
    toolset: Toolset, server: Server, tools: list[Json], latest: RegistryVersion | None
) -> None:
    body = _body(toolset, server)
    written = orjson.dumps([body, tools], option=orjson.OPT_SORT_KEYS)
    digest = sha256(written).hexdigest()
    if latest and latest.digest == digest and latest.deleted_at is None:
        return
    number = latest.number + 1 if latest else 1
    body["version"] = f"1.0.{number}"
    row = {"name": body["name"], "body": body, "digest": digest, "number": number}
    RegistryVersion.objects.create(toolset=toolset, server=server, **row)


def _body(toolset: Toolset, server: Server) -> Json:
    called = server.title.strip() or server.slug
    about = _("Reviewed tools of %s, through Countersign.") % called[: LONGEST_TEXT - 50]
    title = server.title.strip()[:LONGEST_TEXT]
    return {
        "$schema": SCHEMA,
        "name": name_of(toolset.slug, server.slug),
        **({"title": title} if title else {}),
        "description": about,
        "remotes": [_remote(toolset, server)],
    }


def _remote(toolset: Toolset, server: Server) -> Json:
    url = f"{settings.AGENT_URL}/mcp/{toolset.slug}/{server.slug}"
    remote: Json = {"type": "streamable-http", "url": url}
    if not toolset.agent_sign_in:
        about = _("The token of an agent that may use this toolset")
        token = {"description": about, "isRequired": True, "isSecret": True}
        header = {"name": "Authorization", "value": "Bearer {token}", "variables": {"token": token}}
        remote["headers"] = [{**token, **header}]
    return remote
