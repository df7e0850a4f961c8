"""Verbs on servers that are HTTP APIs: registering, another document, other operations.

None of them publishes anything: what is new or changed waits for the ordinary review.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import orjson
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.actors import By, acting
from accounts.models import User
from audit.services import record
from core.english import gettext as _
from core.guarded_http import RequestFailed, WebLimits, fetch, is_inside, is_named_network
from registry import services
from registry.models import ApiDocument, Server
from registry.openapi.document import (
    MAX_BYTES,
    ApiDescription,
    DocumentRefused,
    Fetch,
    base_urls,
    canonical,
    read,
    with_others,
)
from registry.openapi.operations import (
    EFFECTS,
    ApiOperation,
    default_effect,
)
from registry.openapi.reading_process import as_json, read_operations
from registry.upstream import ServerListing

# A large document takes its server a while.
LIMITS = WebLimits(connect_s=5, idle_s=20, total_s=60, max_bytes=MAX_BYTES)
# For all documents that one refers to: whoever answers slowly answers for each of them.
TOGETHER_S = 120
# The tools of one server.
MAX_CHOSEN = 5_000


@dataclass(frozen=True, slots=True)
class DocumentInput:
    """A document as somebody gives it: its text, or where it is."""

    text: bytes = field(default=b"", repr=False)
    url: str = ""
    external_references: bool = False


@dataclass(frozen=True, slots=True)
class DocumentDifference:
    """How another document differs, by the operations' keys."""

    added: list[str]
    removed: list[str]


def fetch_document(
    url: str, networks: Sequence[str] | None = None, limits: WebLimits = LIMITS
) -> bytes:
    """`networks`: None for those of the installation. Raises DocumentRefused."""
    accept = {"Accept": "application/json, application/yaml"}
    try:
        reply = fetch("GET", url, accept, networks=networks, limits=limits)
    except RequestFailed as error:
        raise DocumentRefused(str(error)) from error
    if reply.status != 200:
        said = _("%(url)s answers with status %(status)d.")
        raise DocumentRefused(said % {"url": url[:200], "status": reply.status})
    return as_json(reply.body)


def read_input(given: DocumentInput) -> ApiDescription:
    """Raises DocumentRefused."""
    text = as_json(given.text) if not given.url else fetch_document(given.url)
    description = read(text, source=given.url)
    if given.external_references:
        description = with_others(description, _fetching(_reach(given.url)))
    return description


def _fetching(networks: Sequence[str] | None) -> Fetch:
    """Fetches documents that another refers to, for TOGETHER_S in all."""
    until = time.monotonic() + TOGETHER_S

    def fetch_in_time(url: str) -> bytes:
        left = until - time.monotonic()
        if left <= 0:
            said = _("The documents that it refers to take longer than %d s.")
            raise DocumentRefused(said % TOGETHER_S)
        limits = replace(LIMITS, total_s=min(LIMITS.total_s, left))
        return fetch_document(url, networks, limits)

    return fetch_in_time


def _reach(source: str) -> Sequence[str] | None:
    """A document at a public address leads to public addresses alone."""
    networks: Sequence[str] = settings.UPSTREAM_NETWORKS
    is_inside = not source or is_named_network(urlsplit(source).hostname or "", networks)
    return None if is_inside else ()


@transaction.atomic
def register_api(
    slug: str,
    description: ApiDescription,
    *,
    owner: User,
    by: By,
    url: str = "",
    title: str = "",
    headers: Mapping[str, str] | None = None,
    credential: str = "",
) -> Server:
    """Registers the API as a server that offers nothing yet. `url`: "" for the document's own.
    Raises RegistrationRefused, DocumentRefused, NameRefused and SecretRefused."""
    base = url.rstrip("/") or _named_base(description)
    server = services.register(
        slug,
        transport=Server.Transport.API,
        url=base,
        owner=owner,
        by=by,
        title=title or _info(description)["name"][:200],
        headers=headers,
        credential=credential,
    )
    document = ApiDocument(server=server)
    _put(document, description, server)
    _record(document, by)
    return server


def _named_base(description: ApiDescription) -> str:
    """The first address that the document names. One at a public address names public addresses
    alone. Raises DocumentRefused."""
    base = next(iter(base_urls(description)), "")
    if not base:
        raise DocumentRefused(_("The document names no address of its API: enter its URL."))
    if description.source and is_inside(base) and not is_inside(description.source):
        said = _(
            "%s leads into one of your own networks, and the document is from outside of them. "
            "If it is the right API, enter its URL."
        )
        raise DocumentRefused(said % (urlsplit(base).hostname or ""))
    return base


@transaction.atomic
def set_document(server: Server, description: ApiDescription, *, by: By) -> DocumentDifference:
    """Another document of the same API. Operations that it no longer has are no longer offered from
    the next discovery on; changed ones wait for a review."""
    document = _locked(server)
    before = set(keys_of(document))
    _put(document, description, server)
    _record(document, by)
    after = set(keys_of(document))
    return DocumentDifference(sorted(after - before), sorted(before - after))


@transaction.atomic
def choose(server: Server, effects: Mapping[str, str], *, by: By) -> None:
    """Offers exactly these operations, by key, with their effect ("": as the method says).
    Raises RegistrationRefused."""
    document = _locked(server)
    callable_ones = {row["key"] for row in document.coverage if not row["problem"]}
    if unknown := sorted(set(effects) - callable_ones):
        said = _("“%s” is no operation that can be offered.")
        raise services.RegistrationRefused(said % unknown[0][:200])
    if wrong := sorted(set(effects.values()) - {"", *EFFECTS}):
        raise services.RegistrationRefused(_("“%s” is no known effect.") % wrong[0][:40])
    if len(effects) > MAX_CHOSEN:
        said = _("A server offers at most %d operations.")
        raise services.RegistrationRefused(said % MAX_CHOSEN)
    if dict(effects) == document.chosen:
        return
    added, removed = set(effects) - set(document.chosen), set(document.chosen) - set(effects)
    document.chosen = dict(effects)
    document.save(update_fields=["chosen"])
    record(
        "server.operations_chosen",
        actor=acting(by),
        server=server.slug,
        operations=len(effects),
        added=sorted(added)[:100],
        removed=sorted(removed)[:100],
    )


def keys_of(document: ApiDocument) -> list[str]:
    return [row["key"] for row in document.coverage]


def effect_of(document: ApiDocument, key: str) -> str:
    """The effect that an operator chose, or that the method says."""
    return document.chosen.get(key) or default_effect(key.partition(" ")[0])


def description_of(document: ApiDocument) -> ApiDescription:
    return ApiDescription(orjson.loads(document.body), document.source, document.others)


def listing(server: Server) -> ServerListing:
    """The offered tools, as discovery reads them of other servers. Nothing is asked of the API."""
    document = ApiDocument.objects.get(server=server)
    description = description_of(document)
    if document.base != server.url:
        _put(document, description, server)
    chosen = document.chosen
    operations = {one.key: one for one in _operations(document, description, server, chosen)}
    tools, left_out = [], []
    for key in document.chosen:
        operation = operations.get(key)
        if operation is None:
            left_out.append((document.names.get(key, key), _("The document no longer has it.")))
        elif operation.tool is None:
            left_out.append((operation.name, operation.problem))
        else:
            tools.append(operation.tool)
    return ServerListing("", _info(description), {}, "", tools, tuple(left_out))


def _info(description: ApiDescription) -> dict[str, str]:
    info = description.body.get("info")
    info = info if isinstance(info, dict) else {}
    title, version = info.get("title"), info.get("version")
    return {
        "name": title if isinstance(title, str) else "",
        # YAML reads 1.0 as a number.
        "version": str(version) if isinstance(version, str | int | float) else "",
    }


def _operations(
    document: ApiDocument,
    description: ApiDescription,
    server: Server,
    only: Collection[str] | None = None,
) -> list[ApiOperation]:
    return read_operations(
        description,
        slug=server.slug,
        base=server.url,
        known=document.names,
        effects=document.chosen,
        only=only,
    )


def _put(document: ApiDocument, description: ApiDescription, server: Server) -> None:
    body = canonical(description.body)
    document.body, document.source = body, description.source
    document.others = dict(description.others)
    document.digest = sha256(canonical([description.body, document.others]).encode()).hexdigest()
    document.base = server.url
    operations = _operations(document, description, server)
    if not operations:
        raise DocumentRefused(_("The document has no operations."))
    document.names = document.names | {one.key: one.name for one in operations}
    document.coverage = [_row(one) for one in operations]
    document.changed_at = timezone.now()
    document.save()


def _row(operation: ApiOperation) -> dict[str, Any]:
    return {
        "key": operation.key,
        "name": operation.name,
        "summary": operation.summary,
        "tags": list(operation.tags)[:10],
        "problem": operation.problem,
        "notes": list(operation.notes),
    }


def _record(document: ApiDocument, by: By) -> None:
    record(
        "server.document_set",
        actor=acting(by),
        server=document.server.slug,
        source=document.source,
        digest=document.digest,
        operations=len(document.coverage),
    )


def _locked(server: Server) -> ApiDocument:
    Server.objects.select_for_update().get(pk=server.pk)
    return ApiDocument.objects.select_related("server").get(server=server)
