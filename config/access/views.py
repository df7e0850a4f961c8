"""The page *Who may do what*: from a user, from a service account, or from an object."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from accounts.models import ServiceAccount, ServiceToken, User
from accounts.permission_names import PERMISSION_GROUPS, PERMISSION_NAMES
from accounts.permission_sources import (
    RoleBook,
    people_with_rights,
    person_of,
    read_roles,
)
from accounts.service_accounts import open_scopes
from approvals.models import Delegation
from config.access.doubles import likely_doubles
from config.access.objects import (
    KINDS,
    SUGGESTED,
    AccessObject,
    acts_of,
    find_object,
    permission_act,
    suggest,
)
from config.access.verdicts import AccessAnswer, AccessVerdict, Act
from core.http import page
from core.paging import paged

SEES_OTHERS = "accounts.view_access_review"
# Addresses of others are for nobody else.
HANDLES_USERS = "accounts.change_user"
PAGE_SIZE = 25


class AccessQuery(NamedTuple):
    """The query of the address."""

    person: str
    kind: str
    name: str
    act: str
    search: str

    @classmethod
    def of(cls, given: Mapping[str, str]) -> AccessQuery:
        names = ("person", "kind", "name", "act", "q")
        return cls(*(given.get(name, "").strip()[:200] for name in names))


@page("")
def access(request: ConsoleRequest) -> HttpResponse:
    """Auditors and administrators ask about everybody; others about themselves."""
    asked = AccessQuery.of(request.GET)
    sees_others = request.user.has_perm(SEES_OTHERS)
    if not sees_others:
        if asked.person not in ("", request.user.username):
            raise PermissionDenied
        asked = asked._replace(person=request.user.username)
    book = read_roles(shows_own=request.user.has_perm("auth.view_group"))
    context: dict[str, Any] = {
        "section": "access_review",
        "asked": asked,
        "kinds": [(kind.name, kind.label) for kind in KINDS.values()],
        "sees_others": sees_others,
    }
    shown, missing = _object(request, asked)
    context |= {"object": shown, **missing}
    if not missing:
        context |= _answers(request, asked, shown, book)
    return render(request, "access/access.html", context)


@page(SEES_OTHERS)
def service_account_access(request: ConsoleRequest, name: str) -> HttpResponse:
    """Permissions that a service account's tokens open now."""
    if not request.user.has_perm("accounts.view_serviceaccount"):
        raise PermissionDenied
    account = get_object_or_404(ServiceAccount, name=name)
    makers = _makers([account]).get(account.pk, [])
    alike: dict[str, tuple[AccessVerdict, set[str]]] = {}
    for scope in account.scopes:
        verdict = account_verdict(account, scope, makers)
        # One token explains most of them: said once, above what it opens.
        alike.setdefault(repr(verdict), (verdict, set()))[1].add(scope)
    context = {"section": "access_review", "account": account}
    context["alike"] = [(one, _grouped(scopes)) for one, scopes in alike.values()]
    return render(request, "access/service_account.html", context)


def _grouped(scopes: Collection[str]) -> list[tuple[str, list[str]]]:
    """The names of these permissions, as every page groups them."""
    found = [
        (group.label, [label for name, label in group.permissions.items() if name in scopes])
        for group in PERMISSION_GROUPS
    ]
    return [(title, labels) for title, labels in found if labels]


@page(HANDLES_USERS)
def doubles(request: ConsoleRequest) -> HttpResponse:
    context = {"section": "people", "doubles": likely_doubles()}
    return render(request, "access/doubles.html", context)


def account_verdict(account: ServiceAccount, scope: str, makers: Sequence[User]) -> AccessVerdict:
    """By the tokens that these users created, and that are valid."""
    if not account.enabled:
        return AccessVerdict(AccessAnswer.NO, [_("The account is disabled.")])
    if not makers:
        return AccessVerdict(AccessAnswer.NO, [_("It has no valid token.")])
    able = [one for one in makers if scope in open_scopes(account, one)]
    said = _("By a token of “%s”, who has the permission.")
    if able:
        return AccessVerdict(AccessAnswer.YES, [said % one.username for one in able])
    lacks = _("“%s”, who created its token, does not have the permission now.")
    return AccessVerdict(AccessAnswer.NO, [lacks % one.username for one in makers])


def _object(
    request: ConsoleRequest, asked: AccessQuery
) -> tuple[AccessObject | None, dict[str, Any]]:
    """The object of the address; or names like the one that it asks for."""
    kind = KINDS.get(asked.kind)
    if kind is None or not asked.name:
        return None, {}
    found = find_object(kind, asked.name)
    if found is not None and found.is_visible_to(request.user):
        return found, {}
    # Whoever may see none of a kind is told no names.
    names = suggest(kind, asked.name) if request.user.has_perm(kind.permission) else []
    return None, {"no_object": asked.name, "like_object": names}


def _answers(
    request: ConsoleRequest, asked: AccessQuery, shown: AccessObject | None, book: RoleBook
) -> dict[str, Any]:
    hides_rules = shown is not None and shown.hides_rules_from(request.user)
    acts = acts_of(shown, book, hides_rules=hides_rules) if shown else []
    if asked.person:
        return {"hides_rules": hides_rules} | _of_person(asked, shown, acts, book)
    if shown is None and asked.act in PERMISSION_NAMES:
        acts = [permission_act(asked.act, book)]
    if shown is None and not acts:
        return {"groups": PERMISSION_GROUPS}
    chosen = next((act for act in acts if act.key == asked.act), acts[0] if acts else None)
    context = {"acts": acts, "act": chosen, "hides_rules": hides_rules}
    return context | _who_may(request, asked, chosen)


def _of_person(
    asked: AccessQuery, shown: AccessObject | None, acts: list[Act], book: RoleBook
) -> dict[str, Any]:
    row = people_with_rights().filter(username=asked.person).first()
    if row is None:
        return {"no_person": asked.person, "like_person": _like(asked.person)}
    person = person_of(row)
    rows = [(act.label, act.explain(person)) for act in acts]
    return {
        "person": person,
        "rows": rows,
        "permissions": [] if shown else _permissions(person, book),
        "delegations": _delegations(person),
    }


def _permissions(person: User, book: RoleBook) -> list[tuple[str, list[tuple[str, AccessVerdict]]]]:
    found = []
    for group in PERMISSION_GROUPS:
        acts = [permission_act(name, book) for name in group.permissions]
        found.append((_(group.label), [(act.label, act.explain(person)) for act in acts]))
    return found


def _delegations(person: User) -> Iterable[Delegation]:
    theirs = Q(delegator=person) | Q(delegate=person)
    return Delegation.objects.current().for_page().filter(theirs)


def _like(text: str) -> list[str]:
    found = User.objects.filter(Q(username__icontains=text) | Q(first_name__icontains=text))
    return list(found.order_by("username").values_list("username", flat=True)[:SUGGESTED])


def _who_may(request: ConsoleRequest, asked: AccessQuery, act: Act | None) -> dict[str, Any]:
    """People who may; of a search, all whom it finds."""
    if act is None:
        return {}
    rows: QuerySet[Any] = people_with_rights()
    if asked.search:
        names = Q(username__icontains=asked.search) | Q(first_name__icontains=asked.search)
        rows = rows.filter(names)
    else:
        rows = rows.filter(act.candidates())
    shown = paged(rows, "username", request.GET, size=PAGE_SIZE)
    people = [person_of(row) for row in shown.rows]
    return {
        "page": shown,
        "people": [(person, act.explain(person)) for person in people],
        "accounts": [] if asked.search else _accounts(request, act),
    }


def _accounts(request: ConsoleRequest, act: Act) -> list[tuple[ServiceAccount, AccessVerdict]]:
    """Service accounts with the permission of the act; none of them has a part of an object."""
    permission = getattr(act, "permission", "")
    if not permission or not request.user.has_perm("accounts.view_serviceaccount"):
        return []
    found = list(ServiceAccount.objects.filter(scopes__contains=[permission]).order_by("name"))
    makers = _makers(found)
    return [(one, account_verdict(one, permission, makers.get(one.pk, []))) for one in found]


def _makers(accounts: Sequence[ServiceAccount]) -> dict[int, list[User]]:
    """Creators of the valid tokens, by account."""
    if not accounts:
        return {}
    valid = ServiceToken.objects.valid().filter(account__in=accounts).order_by("created_by")
    pairs = list(valid.values_list("account_id", "created_by_id").distinct())
    rows = people_with_rights().filter(pk__in={maker for _account, maker in pairs})
    people = {row.pk: person_of(row) for row in rows} if pairs else {}
    found: dict[int, list[User]] = {}
    for account, maker in pairs:
        found.setdefault(account, []).append(people[maker])
    return found
