"""Toolsets' servers as an MCP registry, for clients that know no other list.

Source: modelcontextprotocol/registry, docs/reference/api/openapi.yaml of 2025-12-01 (API v0.1);
GitHub Docs, "Configure an MCP registry": CORS. Who reads is a choice of each toolset
(registry.models.RegistryReaders). What is offered no longer is not listed from that moment on.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.core import signing
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.exceptions import NotAuthenticated, NotFound, Throttled, ValidationError
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication import ReaderTokenAuthentication
from accounts.service_accounts import ServiceBearer
from accounts.tokens import Bearer
from core.client_address import client_address
from core.english import gettext as _
from core.request_rate import RequestRate
from gateway.rest import problems
from gateway.rest.api import AgentView
from gateway.rest.v1 import conditional
from gateway.submit import sync
from registry.models import RegistryReaders, RegistryVersion, Toolset

Json = dict[str, Any]

OFFICIAL = "io.modelcontextprotocol.registry/official"
SCOPE = "registry.view_toolset"
LIMIT, LIMIT_MAX = 30, 100
LATEST = "latest"
RATE = RequestRate(600, 60)
# Pages of other origins may read it: VS Code asks from one.
CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, If-None-Match",
    "Access-Control-Expose-Headers": "ETag",
}


class RegistryView(AgentView):
    """Answers who may read the toolset's registry; to others there is none."""

    authentication_classes = [ReaderTokenAuthentication]
    # Decided by the toolset's choice, below.
    permission_classes = [AllowAny]
    # Clients follow the specification, also where it goes further than this version.
    queries = None
    toolset: Toolset

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if wait_s := RATE.wait_s(client_address(request._request)):
            raise Throttled(wait_s)
        self.toolset = _readable(request, kwargs["slug"])

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "OPTIONS":
            # A preflight carries no token, and is answered alike whether anything is here.
            return HttpResponse(status=204, headers=CORS)
        return super().dispatch(request, *args, **kwargs)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        for name, value in CORS.items():
            answer[name] = value
        answer.setdefault("Cache-Control", "private, no-cache")
        return answer

    def get_exception_handler(self) -> Callable[[Exception, Json], Response | None]:
        return _of_exception

    def rows(self) -> QuerySet[Any]:
        """Versions of the toolset's servers."""
        published = sync.published(self.toolset.slug)
        self.offered = published.by_server if published else {}
        return (
            self.toolset.registry_versions.with_latest()
            .select_related("server")
            .annotate(updated_at=Coalesce("deleted_at", "published_at"))
        )

    def is_deleted(self, row: RegistryVersion) -> bool:
        return row.deleted_at is not None or row.server.slug not in self.offered

    def present(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(deleted_at=None, server__slug__in=self.offered)

    def plain(self, row: Any) -> Json:
        about = {
            "status": "deleted" if self.is_deleted(row) else "active",
            "publishedAt": _time(row.published_at),
            "updatedAt": _time(row.updated_at),
            "statusChangedAt": _time(row.updated_at),
            "isLatest": row.number == row.latest,
        }
        return {"server": row.body, "_meta": {OFFICIAL: about}}

    def answer(self, request: Request, body: Json) -> Response:
        tag = conditional.etag(body)
        if conditional.is_known(request, tag):
            return Response(None, 304, headers={"ETag": tag})
        return Response(body, headers={"ETag": tag})

    def listed(self, request: Request, rows: list[RegistryVersion], cursor: str = "") -> Response:
        metadata = {"count": len(rows)} | ({"nextCursor": cursor} if cursor else {})
        servers = [self.plain(row) for row in rows]
        return self.answer(request, {"servers": servers, "metadata": metadata})


class RegistryServers(RegistryView):
    def get(self, request: Request, slug: str) -> Response:
        """Lists versions in the order of their publication."""
        wanted = _wanted(request, self.toolset)
        rows = _narrowed(self.rows(), wanted)
        if not (wanted.include_deleted or wanted.updated_since):
            rows = self.present(rows)
        limit = _limit(request)
        found = list(rows.filter(pk__gt=wanted.beyond).order_by("pk")[: limit + 1])
        shown = found[:limit]
        more = _cursor(self.toolset, wanted, shown[-1].pk) if len(found) > limit else ""
        return self.listed(request, shown, more)


class RegistryVersions(RegistryView):
    def get(self, request: Request, slug: str, name: str) -> Response:
        """Lists the versions of one server, the newest first."""
        rows = self.rows().filter(name=name)
        if not _flag(request, "include_deleted"):
            rows = self.present(rows)
        if not (found := list(rows.order_by("-number"))):
            raise NotFound(_("Server not found"))
        return self.listed(request, found)


class OneRegistryVersion(RegistryView):
    def get(self, request: Request, slug: str, name: str, version: str) -> Response:
        rows = self.rows().filter(name=name)
        if not _flag(request, "include_deleted"):
            rows = self.present(rows)
        is_it = Q(number=F("latest")) if version == LATEST else Q(body__version=version)
        if (row := rows.filter(is_it).first()) is None:
            raise NotFound(_("Server not found"))
        return self.answer(request, self.plain(row))

    def put(self, request: Request, **named: Any) -> Response:
        return _not_here(_("Updates are not supported by this registry"))

    def delete(self, request: Request, **named: Any) -> Response:
        return _not_here(_("Deletion is not supported by this registry"))


class RegistryStatus(RegistryView):
    def patch(self, request: Request, **named: Any) -> Response:
        return _not_here(_("Updates are not supported by this registry"))


class RegistryPublish(RegistryView):
    def post(self, request: Request, slug: str) -> Response:
        return _not_here(_("Publishing is not supported by this registry"))


class NothingInRegistry(RegistryView):
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound(_("There is no such address."))


class Wanted(NamedTuple):
    """The filters of a list, and where its page begins.

    VS Code sends the search with the first page alone, so that a cursor carries it.
    """

    beyond: int = 0
    search: str = ""
    version: str = ""
    updated_since: str = ""
    include_deleted: bool = False


def _wanted(request: Request, toolset: Toolset) -> Wanted:
    given = request.query_params
    wanted = _of_cursor(toolset, given["cursor"]) if given.get("cursor") else Wanted()
    wanted = wanted._replace(
        search=given.get("search", wanted.search),
        version=given.get("version", wanted.version),
        updated_since=given.get("updated_since", wanted.updated_since),
    )
    if "include_deleted" in given:
        wanted = wanted._replace(include_deleted=_flag(request, "include_deleted"))
    return wanted


def _narrowed(rows: QuerySet[Any], wanted: Wanted) -> QuerySet[Any]:
    if text := wanted.search:
        rows = rows.filter(Q(name__icontains=text) | Q(body__description__icontains=text))
    if wanted.version == LATEST:
        rows = rows.filter(number=F("latest"))
    elif wanted.version:
        rows = rows.filter(body__version=wanted.version)
    if wanted.updated_since:
        rows = rows.filter(updated_at__gt=_since(wanted.updated_since))
    return rows


def _salt(toolset: Toolset) -> str:
    return f"registry of toolset {toolset.pk}"


def _cursor(toolset: Toolset, wanted: Wanted, beyond: int) -> str:
    return signing.dumps(wanted._replace(beyond=beyond), salt=_salt(toolset))


def _of_cursor(toolset: Toolset, text: str) -> Wanted:
    try:
        return Wanted(*signing.loads(text, salt=_salt(toolset)))
    except (signing.BadSignature, TypeError) as error:
        raise ValidationError({"detail": _("This cursor is not of this list.")}) from error


def _since(text: str) -> datetime:
    try:
        # A plus that was not encoded has become a space.
        read = datetime.fromisoformat(text.replace(" ", "+"))
        if read.tzinfo is not None:
            # Far from UTC it may be in no year of it.
            return read.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    said = _("updated_since must be a time as in RFC 3339, such as 2026-01-31T08:00:00Z.")
    raise ValidationError({"detail": said})


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", str(LIMIT))
    if (
        not (text.isascii() and text.isdecimal())
        or len(text) > 9
        or not 1 <= int(text) <= LIMIT_MAX
    ):
        raise ValidationError({"detail": _("limit must be 1 to %d.") % LIMIT_MAX})
    return int(text)


def _flag(request: Request, name: str) -> bool:
    text = request.query_params.get(name, "false").lower()
    if text not in ("true", "false"):
        raise ValidationError({"detail": _("%s must be true or false.") % name})
    return text == "true"


def _time(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _readable(request: Request, slug: str) -> Toolset:
    toolset = Toolset.objects.filter(slug=slug).first()
    readers = toolset.registry_readers if toolset else RegistryReaders.NONE
    if request.auth is None and readers != RegistryReaders.ANYONE:
        # The same for toolsets that there are and that there are not.
        raise NotAuthenticated(_("This registry is read with a token."))
    if toolset is None or readers == RegistryReaders.NONE or not _may_read(request, toolset):
        raise NotFound(_("There is no such registry for this token."))
    return toolset


def _may_read(request: Request, toolset: Toolset) -> bool:
    if toolset.registry_readers == RegistryReaders.ANYONE:
        return True
    if isinstance(request.auth, ServiceBearer):
        return SCOPE in request.auth.scopes
    if not isinstance(request.auth, Bearer) or not request.auth.opens(toolset.slug):
        return False
    return toolset.agents.filter(pk=request.auth.agent_id).exists()


def _not_here(said: str) -> Response:
    return Response({"error": said}, 501)


def _of_exception(error: Exception, context: Json) -> Response | None:
    """The same answers as elsewhere, in the specification's form."""
    response = problems.of_exception(error, context)
    if response is None:
        return None
    headers = {name: value for name, value in response.items() if name != "Content-Type"}
    return Response({"error": response.data["detail"]}, response.status_code, headers=headers)
