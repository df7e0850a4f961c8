"""The fixed roles, and those that administrators put together."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.models import Group
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts import custom_roles
from accounts.actors import AccountRefused
from accounts.forms import RoleForm
from accounts.http import ConsoleRequest, reason_in
from accounts.models import CustomRole
from accounts.permission_names import PERMISSION_NAMES
from accounts.roles import DESCRIPTIONS, Role
from core.http import page


@page("auth.view_group")
def role_list(request: ConsoleRequest) -> HttpResponse:
    fixed = (
        Group.objects.filter(name__in=list(Role)).annotate(holders=Count("user")).order_by("name")
    )
    own = CustomRole.objects.select_related("group", "created_by").order_by("group__name")
    context = {
        "section": "roles",
        "fixed": [(group, DESCRIPTIONS[Role(group.name)]) for group in fixed],
        "own": own.annotate(holders=Count("group__user")),
    }
    return render(request, "accounts/roles.html", context)


@page("auth.add_group", "GET", "HEAD", "POST")
def add_role(request: ConsoleRequest) -> HttpResponse:
    form = RoleForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            made = custom_roles.create(
                given["name"],
                description=given["description"],
                terms=form.terms,
                by=request.user,
            )
        except AccountRefused as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, _("“%s” is there. Nobody has it yet.") % made)
            return redirect("accounts:role", made.pk)
    return render(request, "accounts/role_add.html", {"section": "roles", "form": form})


@page("auth.view_group")
def role(request: ConsoleRequest, pk: int) -> HttpResponse:
    return _show(request, _role(pk))


@page("auth.change_group", "POST")
def change_role(request: ConsoleRequest, pk: int) -> HttpResponse:
    shown = _role(pk)
    given = request.POST.copy()
    given["name"] = str(shown)
    form = RoleForm(given)
    if not form.is_valid() or shown.retired_at:
        return _show(request, shown, form)
    description = form.cleaned_data["description"]
    try:
        custom_roles.change(shown, description=description, terms=form.terms, by=request.user)
    except AccountRefused as error:
        form.add_error(None, str(error))
        return _show(request, shown, form)
    messages.success(request, _("The role “%s” is changed.") % shown)
    return redirect("accounts:role", pk)


@page("auth.change_group", "POST")
def retire_role(request: ConsoleRequest, pk: int) -> HttpResponse:
    shown = _role(pk)
    try:
        custom_roles.retire(shown, by=request.user, reason=reason_in(request))
    except AccountRefused as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("Nobody has the role “%s” any more.") % shown)
    return redirect("accounts:role", pk)


def _role(pk: int) -> CustomRole:
    return get_object_or_404(CustomRole.objects.select_related("group", "created_by"), pk=pk)


def _show(request: ConsoleRequest, shown: CustomRole, form: RoleForm | None = None) -> HttpResponse:
    terms = custom_roles.terms_of(shown)
    context = {
        "section": "roles",
        "role": shown,
        "holders": shown.group.user_set.order_by("username"),
        "scoped": sorted(PERMISSION_NAMES[name] for name in terms.scoped),
        "everywhere": sorted(PERMISSION_NAMES.get(name, name) for name in terms.everywhere),
        "form": form or RoleForm.of(shown, terms),
    }
    return render(request, "accounts/role.html", context)
