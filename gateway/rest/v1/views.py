"""Views of service accounts: permissions by method, request rates, fields, versions and keys."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar, cast

from django.db import models, transaction
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, Throttled, ValidationError
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.actors import ServiceCaller
from accounts.authentication import ServiceTokenAuthentication
from accounts.permission_names import PERMISSION_NAMES
from accounts.service_accounts import ServiceBearer
from core.english import gettext as _
from core.outage import recording
from core.paging import SIZE, Page, paged
from core.request_rate import RequestRate
from gateway.rest.api import AgentView
from gateway.rest.formats import ObjectParser
from gateway.rest.v1 import conditional, idempotency
from gateway.rest.v1.schema import ServiceSchema

LIMIT_MAX = 200
RATE = RequestRate(600, 60)
Shown = dict[str, Any]
Row = TypeVar("Row", bound=models.Model)
Fetched = TypeVar("Fetched")


class HasScopes(BasePermission):
    """All permissions of the view's method, which the token has at this moment."""

    def has_permission(self, request: Request, view: Any) -> bool:
        for scope in view.scopes_of(request.method):
            require(request, scope)
        return True


def require(request: Request, scope: str) -> None:
    """Raises PermissionDenied, with the name of the permission."""
    if scope not in bearer_of(request).scopes:
        said = _("This token does not have the permission “%(label)s” (%(name)s).")
        raise PermissionDenied(said % {"label": PERMISSION_NAMES[scope], "name": scope})


class ServiceView(AgentView):
    """`scopes`: by method, the permissions that it takes. Empty: every token of an account."""

    authentication_classes = [ServiceTokenAuthentication]
    permission_classes = [IsAuthenticated, HasScopes]
    parser_classes = [ObjectParser]
    schema = ServiceSchema()
    scopes: dict[str, tuple[str, ...]] = {}
    # For the OpenAPI document and for reading bodies, by method.
    bodies: dict[str, type[serializers.Serializer[Any]]] = {}
    answers: dict[str, Any] = {}
    # The status of a success that has nothing to show.
    empty_answers: dict[str, int] = {}
    queries: Collection[str] = ()
    # Of those that are not any text.
    query_schemas: dict[str, dict[str, Any]] = {}
    is_list = False
    # Whether `?fields=` chooses the members of what it shows.
    has_fields = False
    # Whether its POST takes an idempotency key, and its changes a version.
    has_key = True
    is_versioned = False

    def queries_of(self, method: str) -> Collection[str]:
        if method not in ("GET", "HEAD"):
            return ()
        paging = ("cursor", "limit") if self.is_list else ()
        return (*self.queries, *paging, *(("fields",) if self.has_fields else ()))

    def scopes_of(self, method: str) -> tuple[str, ...]:
        return self.scopes["GET" if method == "HEAD" else method]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if request.method not in (*self.scopes, "HEAD") or not self._answers(request.method):
            self.http_method_not_allowed(request, *args, **kwargs)
        super().initial(request, *args, **kwargs)

    @property
    def allowed_methods(self) -> list[str]:
        return sorted(self.scopes)

    def _answers(self, method: str) -> bool:
        # A view may have none by None.
        return getattr(self, "get" if method == "HEAD" else method.lower(), None) is not None

    def check_permissions(self, request: Request) -> None:
        """Counts the request first: one that is answered 403 costs no less."""
        if isinstance(request.auth, ServiceBearer):
            request.quota = RATE.take(request.auth.token.public_id)  # type: ignore[attr-defined]
            if wait_s := request.quota.wait_s:  # type: ignore[attr-defined]
                raise Throttled(wait_s)
        super().check_permissions(request)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Source of the fields: draft-ietf-httpapi-ratelimit-headers, 3 and 4."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        if quota := getattr(request, "quota", None):
            answer["RateLimit-Policy"] = f'"token";q={RATE.amount};w={RATE.window_s:.0f}'
            answer["RateLimit"] = f'"token";r={quota.left};t={quota.reset_s}'
        answer.setdefault("Cache-Control", "private, no-cache")
        return answer

    def body(self, request: Request) -> dict[str, Any]:
        """The members that were sent. Raises ValidationError, with the place of each mistake."""
        read = self.bodies[str(request.method)](
            data=request.data, partial=request.method == "PATCH"
        )
        read.is_valid(raise_exception=True)
        return cast("dict[str, Any]", read.validated_data)

    def once(self, request: Request, work: Callable[[], Response], *, secret: str = "") -> Response:
        with recording(request._request):
            account = bearer_of(request).token.account
            return idempotency.once(request, account, work, secret=secret)

    def once_fetched(
        self, request: Request, fetch: Callable[[], Fetched], work: Callable[[Fetched], Response]
    ) -> Response:
        """`fetch` waits for another program: before the transaction, and only for a new request."""
        known = idempotency.answered(request, bearer_of(request).token.account)
        if known is not None:
            return known
        fetched = fetch()
        return self.once(request, lambda: work(fetched))


class ListView(ServiceView):
    """Rows after a cursor; `next` is the cursor of what follows, null at the end."""

    rows: Callable[..., models.QuerySet[Any]]
    key = "id"
    # Reads a cursor; raises ValueError.
    cursor: Callable[[str], Any] = int
    shown: Callable[[Any], Shown]
    is_list = True
    has_fields = True

    def get(self, request: Request, **named: Any) -> Response:
        cls = type(self)
        # Also where no row is.
        names_of(request, [*self.answers["GET"]().fields])
        given = {"beyond": cursor_of(request, cls.cursor)}
        page = paged(cls.rows(request, **named), cls.key, given, size=limit_of(request))
        return list_response(request, page, cls.shown)


class RowView(ServiceView):
    """One row, which is changed and deleted only by who read its present version."""

    is_versioned = True
    has_fields = True
    # Members that change by themselves.
    volatile: Collection[str] = ()

    # Of a request and what its address names. Raises Http404.
    row: Callable[..., Any]
    plain: Callable[..., Shown]

    def get(self, request: Request, **named: Any) -> Response:
        row = self.row(request, **named)
        plain = self.plain(row)
        tag = conditional.of_selection(self.tag(row), names_of(request, plain))
        if conditional.is_known(request, tag):
            return Response(None, 304, headers={"ETag": tag})
        return Response(selected(request, plain), headers={"ETag": tag})

    def tag(self, row: Any) -> str:
        return conditional.etag(self.plain(row) | self.unseen(row), without=self.volatile)

    def unseen(self, row: Any) -> Shown:
        """A part of the version that no answer has."""
        return {}

    def locked(self, row: Any) -> models.QuerySet[Any]:
        """The rows that a change locks, in the order in which all others lock them."""
        model: type[models.Model] = type(row)
        return model._default_manager.filter(pk=row.pk)

    def answer(self, row: Any, status: int = 200, location: str = "") -> Response:
        headers = {"ETag": self.tag(row)} | ({"Location": location} if location else {})
        return Response(self.plain(row), status, headers=headers)

    def changed(self, request: Request, work: Callable[[Any], Response], **named: Any) -> Response:
        """Does `work` with the locked row, if it is as `If-Match` says."""
        with recording(request._request), transaction.atomic():
            rows = self.locked(self.row(request, **named))
            list(rows.select_for_update().values_list("pk"))
            # It may be gone by now.
            row = self.row(request, **named)
            conditional.check(request, self.tag(row))
            return work(row)


def equal_to(rows: models.QuerySet[Any], request: Request, **fields: str) -> models.QuerySet[Any]:
    """Narrowed by the query's parameters, which name fields."""
    given = request.query_params
    return rows.filter(**{field: given[name] for name, field in fields.items() if name in given})


def bearer_of(request: Request) -> ServiceBearer:
    return cast("ServiceBearer", request.auth)


def caller_of(request: Request) -> ServiceCaller:
    return bearer_of(request).caller


def list_response(request: Request, page: Page[Any], shown: Callable[[Any], Shown]) -> Response:
    items = [selected(request, shown(row)) for row in page.rows]
    return Response({"items": items, "next": page.next or None})


def selected(request: Request, plain: Shown) -> Shown:
    """Only the members that `?fields=` names."""
    names = names_of(request, plain)
    return plain if names is None else {name: plain[name] for name in plain if name in names}


def names_of(request: Request, plain: Collection[str]) -> list[str] | None:
    """Those of `?fields=`; None without it. Raises ValidationError for one that is none."""
    wanted = request.query_params.get("fields")
    if wanted is None:
        return None
    names = wanted.split(",")
    if unknown := [name for name in names if name not in plain]:
        said = _("fields names “%s”, which is not among: %s.")
        raise ValidationError({"detail": said % (unknown[0][:60], ", ".join(plain))})
    return names


def cursor_of(request: Request, read: Callable[[str], Any]) -> str:
    given = request.query_params.get("cursor", "")
    try:
        if given:
            read(given)
    except ValueError:
        raise ValidationError(
            {"detail": _("cursor must be `next` of an earlier answer.")}
        ) from None
    return given


def limit_of(request: Request) -> int:
    given = request.query_params.get("limit", str(SIZE))
    if not (given.isascii() and given.isdecimal()) or len(given) > 9:
        raise ValidationError({"detail": _("limit must be 1 to %d.") % LIMIT_MAX})
    if not 1 <= int(given) <= LIMIT_MAX:
        raise ValidationError({"detail": _("limit must be 1 to %d.") % LIMIT_MAX})
    return int(given)
