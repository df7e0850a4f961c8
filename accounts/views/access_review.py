"""Pages of the access review: read it, export it, sign it off."""

from __future__ import annotations

from typing import NamedTuple

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import access_review as reviews
from accounts.access_review import AGENT, PERSON, SERVICE_ACCOUNT, AccessOrigin, Holder
from accounts.actors import AccountRefused
from accounts.http import ConsoleRequest, reason_in
from accounts.permission_names import PERMISSION_NAMES
from accounts.service_accounts import CHANGING
from audit.names import entries_of
from core.http import page
from core.paging import SIZE

KINDS = {
    PERSON: gettext_lazy("Users"),
    SERVICE_ACCOUNT: gettext_lazy("Service accounts"),
    AGENT: gettext_lazy("Agents"),
}
SIGNED_MAX = 20


class HeldPermissions(NamedTuple):
    label: str
    origin: AccessOrigin
    names: list[str]


class HolderPage(NamedTuple):
    rows: list[Holder]
    next: str
    previous: str


@page("accounts.view_access_review")
def access_review(request: ConsoleRequest) -> HttpResponse:
    report = reviews.report()
    asked = request.GET.get("kind", PERSON)
    kind = asked if asked in KINDS else PERSON
    shown = _page(report.of(kind), request.GET.get("beyond") or request.GET.get("back", ""))
    context = {
        "section": "access_review",
        "kind": kind,
        "kinds": [(one, label, report.counts.get(one, 0)) for one, label in KINDS.items()],
        "page": shown,
        "names": PERMISSION_NAMES,
        "groups": {one.pk: _groups(one) for one in shown.rows if kind == SERVICE_ACCOUNT},
        "digest": report.digest,
        "signed": entries_of(["access_review.signed"]).order_by("-pk")[:SIGNED_MAX],
    }
    return render(request, "accounts/access_review.html", context)


@page("accounts.view_access_review")
def export(request: ConsoleRequest) -> HttpResponse:
    response = HttpResponse(reviews.report().csv, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="countersign-access.csv"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@page("accounts.sign_access_review", "POST")
def sign_off(request: ConsoleRequest) -> HttpResponse:
    seen = request.POST.get("digest", "")
    try:
        reviews.sign_off(seen, reason=reason_in(request), by=request.user)
    except AccountRefused as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("The access review is signed off."))
    return redirect("accounts:access_review")


def _groups(account: Holder) -> list[HeldPermissions]:
    """To read first, then to change; each by when and by whom it was given."""
    found: dict[tuple[str, AccessOrigin], list[str]] = {}
    for one in sorted(account.access, key=lambda one: one.name in CHANGING):
        label = _("Write") if one.name in CHANGING else _("Read")
        names = found.setdefault((label, one.origin), [])
        names.append(PERMISSION_NAMES.get(one.name, one.name))
    return [HeldPermissions(*key, names) for key, names in found.items()]


def _page(holders: list[Holder], asked: str) -> HolderPage:
    first = int(asked) if asked.isascii() and asked.isdigit() else 0
    later = str(first + SIZE) if len(holders) > first + SIZE else ""
    earlier = str(max(0, first - SIZE)) if first else ""
    return HolderPage(holders[first : first + SIZE], later, earlier)
