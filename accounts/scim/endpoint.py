"""SCIM 2.0 over HTTP: who asks, within which bounds, and the answer. Source: RFC 7644."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from scim2_models import (
    ForbiddenException,
    InvalidSyntaxException,
    PayloadTooLargeException,
    Resource,
    ResponseParameters,
    SCIMException,
    UnauthorizedException,
    UniquenessException,
)
from scim2_server.handler import ScimHandler
from scim2_server.requests import ScimRequest
from scim2_server.responses import SCIM_MEDIA_TYPE, ScimResponse
from scim2_server.service import ScimService

from accounts import attempts, refusals
from accounts.oidc.providers import UnknownProvider, provider_of
from accounts.scim import tokens
from accounts.scim.provisioning import Provisioner, SetActive
from accounts.scim.schemas import SERVICE
from accounts.scim.storage import Storage
from core import strict_json
from core.connections import each_within
from core.english import gettext as _
from core.strict_json import Ambiguous

PATH = "/scim/v2"
# A group of ten thousand members fits.
BODY_MAX = 2 * 1024 * 1024
FILTER_MAX = 1000
# Of a search in the body, or of a query: each term of a filter is compared with each row.
SEARCH_MAX = FILTER_MAX * 4
DETAIL_MAX = 300
# Of each statement: a provider asks again.
STATEMENT_S = 10.0


class TooManyRequests(SCIMException):
    status = 429


class PatchAnswersService(ScimService):
    def patch_response(
        self,
        base_url: str,
        resource: Resource[Any],
        response_parameters: ResponseParameters[Any],
    ) -> ScimResponse:
        """With the resource, which not every provider asks for again."""
        return self.replacement_response(base_url, resource, response_parameters)


_SERVICE = PatchAnswersService(SERVICE)


@csrf_exempt
@never_cache
def endpoint(request: HttpRequest, path: str, set_active: SetActive) -> HttpResponse:
    """Everything below /scim/v2, for whoever has a SCIM token; sessions open nothing here."""
    with each_within(STATEMENT_S):
        try:
            by = _authenticate(request, set_active)
            answer = _handle(request, path, by)
        except SCIMException as error:
            answer = _SERVICE.error_response(error)
    return _response(answer)


def _handle(request: HttpRequest, path: str, by: Provisioner) -> ScimResponse:
    changes = request.method != "GET" and not _is_search(path)
    try:
        return ScimHandler(_SERVICE, Storage(by, changes=changes)).handle(_read(request, path))
    except (ForbiddenException, UniquenessException) as error:
        # Not for this provider to change, or somebody else's.
        refusals.scim_change(request, by.actor, str(error.detail or error)[:DETAIL_MAX])
        raise


def _authenticate(request: HttpRequest, set_active: SetActive) -> Provisioner:
    scheme, _space, text = request.headers.get("Authorization", "").partition(" ")
    token = tokens.look_up(text.strip()) if scheme.lower() == "bearer" else None
    if token is None:
        raise _refused(request)
    try:
        provider = provider_of(token.issuer)
    except UnknownProvider as error:
        # Taken out of the host's file, or that cannot be read: its token opens nothing then.
        said = _("The host's file names no identity provider for %s.") % token
        raise _refused(request, said) from error
    tokens.note_used(token)
    return Provisioner(provider, tokens.actor_of(token, provider), set_active)


def _refused(request: HttpRequest, why: str = "") -> SCIMException:
    """One answer for garbage, expired, revoked and other kinds of tokens. `why`: for the record."""
    try:
        attempts.wrong(attempts.begin_scim(request), "", why)
    except attempts.TooManyAttempts as error:
        return TooManyRequests(detail=str(error))
    return UnauthorizedException(detail="No valid SCIM token.")


def _is_search(path: str) -> bool:
    return path.rstrip("/").endswith(".search")


def _read(request: HttpRequest, path: str) -> ScimRequest:
    most = SEARCH_MAX if _is_search(path) else BODY_MAX
    body = request.read(most + 1)
    if len(body) > most:
        raise PayloadTooLargeException(detail=f"The body may be {most} bytes long at most.")
    if len(request.META.get("QUERY_STRING", "")) > SEARCH_MAX:
        raise PayloadTooLargeException(detail="The query is too long.")
    if body:
        _check_json(body)
    return ScimRequest(
        method=request.method or "GET",
        base_url=f"{settings.PUBLIC_URL}{PATH}",
        path=f"/{path}",
        query=request.GET.dict(),
        headers=dict(request.headers),
        body=body,
    )


def _check_json(body: bytes) -> None:
    try:
        strict_json.loads(body)
    except Ambiguous as error:
        raise InvalidSyntaxException(detail=str(error)) from error


def _response(answer: ScimResponse) -> HttpResponse:
    headers = {name: value for name, value in answer.headers.items() if name != "Content-Type"}
    if answer.body is None:
        return HttpResponse(status=answer.status, headers=headers)
    return JsonResponse(
        answer.body, status=answer.status, headers=headers, content_type=SCIM_MEDIA_TYPE
    )
