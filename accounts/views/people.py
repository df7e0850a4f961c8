"""People, what they may do, and what each sets for themselves."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db.models import Prefetch
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts import (
    display_names,
    factor_resets,
    first_passwords,
    independence,
    issued_tokens,
    refusals,
    required_factors,
    role_changes,
    services,
    sessions,
    single_person,
)
from accounts.attempts import TooManyAttempts
from accounts.forms import (
    DisplayNameForm,
    FactorForm,
    GroupsForm,
    InviteForm,
    RenameForm,
    TimeZoneForm,
    zones,
)
from accounts.http import ConsoleRequest
from accounts.models import CodeApp, Proof, RoleChange, User
from accounts.oidc import identities
from accounts.oidc.metadata import ProviderFailed
from accounts.oidc.providers import BadConfiguration, usable_providers
from accounts.stepup import NotProven
from accounts.views.proofs import AFTER, proving
from accounts.views.signed_in import address_of
from core.http import page
from core.messages.localizing import localized
from core.paging import paged


@page("accounts.view_user")
def people(request: ConsoleRequest) -> HttpResponse:
    shown = User.objects.prefetch_related(Prefetch("groups", Group.objects.order_by("name")))
    known = independence.unconfirmed_inviters()
    linked = role_changes.linked_by(request.user)
    context = {
        "section": "people",
        "page": paged(shown, "username", request.GET),
        "single_person": single_person.is_on(),
        "requests": [
            (change, role_changes.why_not_confirm(change, request.user, known, linked))
            for change in role_changes.requested()
        ],
        "resets": factor_resets.requested(),
        "recent": role_changes.recent(),
        "factor_form": FactorForm(initial={"groups": required_factors.groups()}),
    }
    return render(request, "accounts/people.html", context)


@page("auth.change_group", "POST")
def require_factor(request: ConsoleRequest) -> HttpResponse:
    form = FactorForm(request.POST)
    if form.is_valid():
        required_factors.set_groups(form.cleaned_data["groups"], by=request.user)
        messages.success(request, _("Roles and groups that need a second factor are as chosen."))
    else:
        messages.error(request, _("Choose among the groups that are listed."))
    return redirect("accounts:people")


@page("accounts.add_user", "GET", "HEAD", "POST")
def invite(request: ConsoleRequest) -> HttpResponse:
    form = InviteForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return render(request, "accounts/invite.html", {"section": "people", "form": form})
    names = [group.name for group in form.cleaned_data["groups"]]
    try:
        made = services.create_person(form.cleaned_data["username"], roles=names, by=request.user)
    except services.AccountRefused as error:
        form.add_error("groups", str(error))
        return render(request, "accounts/invite.html", {"section": "people", "form": form})
    return _with_link(request, made)


@page("accounts.view_user", "GET", "HEAD", "POST")
def person(request: ConsoleRequest, pk: int) -> HttpResponse:
    shown = get_object_or_404(User, pk=pk)
    form = GroupsForm(request.POST or None, initial={"groups": shown.groups.all()})
    if request.method == "POST" and not request.user.has_perm("accounts.change_user"):
        raise PermissionDenied
    if request.method == "POST" and form.is_valid():
        try:
            waiting = services.set_groups(shown, form.cleaned_data["groups"], by=request.user)
        except services.AccountRefused as error:
            form.add_error("groups", str(error))
        else:
            if waiting:
                messages.warning(request, _waits(waiting))
            else:
                messages.success(request, _("Roles and groups of “%s” are as chosen.") % shown)
            return redirect("accounts:person", pk)
    return _show(request, shown, form)


def _waits(roles: list[str]) -> str:
    said = _("Another administrator has to confirm: %(roles)s. Until then nothing is given.")
    return said % {"roles": ", ".join(map(localized, roles))}


@page("accounts.change_user", "POST")
def answer_request(request: ConsoleRequest, pk: int) -> HttpResponse:
    """Another administrator's word on a role that was asked for; who asked may take it back."""
    change = get_object_or_404(RoleChange.objects.select_related("person", "asked_by"), pk=pk)
    confirms = request.POST.get("answer") == "confirm"
    try:
        (role_changes.confirm if confirms else role_changes.refuse)(change, by=request.user)
    except services.AccountRefused as error:
        if confirms:
            refusals.confirmation(request, change, error)
        messages.error(request, str(error))
    else:
        names = {"who": change.person.username, "role": localized(change.role)}
        said = (
            _("“%(who)s” is %(role)s now.")
            if confirms
            else _("“%(who)s” is not given the role %(role)s.")
        )
        messages.success(request, said % names)
    return redirect("accounts:people")


@page("accounts.change_user", "POST")
def rename(request: ConsoleRequest, pk: int) -> HttpResponse:
    shown = get_object_or_404(User, pk=pk)
    form = RenameForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Give a name."))
        return redirect("accounts:person", pk)
    before = shown.username
    try:
        services.rename(shown, form.cleaned_data["name"], by=request.user)
    except services.AccountRefused as error:
        messages.error(request, str(error))
    else:
        names = {"before": before, "after": shown.username}
        messages.success(request, _("“%(before)s” is called “%(after)s” now.") % names)
    return redirect("accounts:person", pk)


@page("accounts.change_user", "POST")
def confirm(request: ConsoleRequest, pk: int) -> HttpResponse:
    shown = get_object_or_404(User, pk=pk)
    try:
        independence.confirm(shown, by=request.user)
    except services.AccountRefused as error:
        refusals.confirmation(request, shown, error)
        messages.error(request, str(error))
    else:
        messages.success(request, _("“%s” is confirmed as another person.") % shown)
    return redirect("accounts:person", pk)


@page("accounts.change_user", "POST")
def new_link(request: ConsoleRequest, pk: int) -> HttpResponse:
    return _with_link(request, get_object_or_404(User, pk=pk, is_active=True))


@page("", "GET", "HEAD", "POST")
def profile(request: ConsoleRequest) -> HttpResponse:
    form = TimeZoneForm(request.POST or None, initial={"time_zone": request.user.time_zone})
    if request.method == "POST" and form.is_valid():
        services.set_time_zone(request.user, form.cleaned_data["time_zone"])
        messages.success(request, _("Your times are shown in %s.") % request.user.time_zone)
        return redirect("accounts:profile")
    return _profile(request, form, _password_form(request, None))


@page("", "POST")
def display_name(request: ConsoleRequest) -> HttpResponse:
    form = DisplayNameForm(request.POST)
    if form.is_valid():
        try:
            display_names.set_display_name(request.user, form.cleaned_data["display_name"])
        except services.AccountRefused as error:
            form.add_error("display_name", str(error))
        else:
            messages.success(request, _("Your display name is as you chose."))
            return redirect("accounts:profile")
    zone = TimeZoneForm(initial={"time_zone": request.user.time_zone})
    return _profile(request, zone, _password_form(request, None), called=form)


@page("", before_factor=True)
def set_up_factor(request: ConsoleRequest) -> HttpResponse:
    """Shown in place of any page to whoever has to have a second factor."""
    if there := refusals.local_page(request, request.GET.get("next", "")):
        request.session[AFTER] = address_of(there)
    if not request.user.lacks_factor:
        return redirect(request.session.pop(AFTER, "accounts:profile"))
    context = {
        "groups": required_factors.groups_of(request.user),
        "password_form": _password_form(request, None),
        "first_password": first_passwords.options(request, request.user),
    }
    return render(request, "accounts/set_up_factor.html", context | proving(request.user))


@page("", "POST", before_factor=True)
def password(request: ConsoleRequest) -> HttpResponse:
    form = _password_form(request, request.POST)
    proof = _prove_first_password(request, form) if form.is_valid() else None
    if form.errors:
        zone = TimeZoneForm(initial={"time_zone": request.user.time_zone})
        return _profile(request, zone, form)
    services.set_password(request.user, form.cleaned_data["new_password1"], proof)
    before = request.session.session_key
    update_session_auth_hash(request, request.user)
    sessions.move(before, request.session.session_key)
    messages.success(request, _("Your password is set. Your other sessions have ended."))
    lacks_factor = request.user.lacks_factor
    return redirect("accounts:set_up_factor" if lacks_factor else "accounts:profile")


def _prove_first_password(request: ConsoleRequest, form: SetPasswordForm[User]) -> Proof | None:
    try:
        return first_passwords.prove(request, request.user)
    except (NotProven, TooManyAttempts) as error:
        form.add_error(None, str(error))
        return None


@page("", "POST", before_factor=True)
def confirm_first_password(request: ConsoleRequest) -> HttpResponse:
    """A page with a link to the provider, since a form may lead to no other site."""
    lacks_factor = request.user.lacks_factor
    back = reverse("accounts:set_up_factor" if lacks_factor else "accounts:profile")
    try:
        there = first_passwords.begin(request, request.user, next_page=back)
    except (NotProven, ProviderFailed, BadConfiguration) as error:
        messages.error(request, str(error))
        return redirect(back)
    return render(request, "accounts/confirm_password.html", {"there": there, "back": back})


def _password_form(request: ConsoleRequest, data: Any) -> SetPasswordForm[User]:
    # Who came by a link has no old password to give.
    has_one = request.user.has_usable_password()
    form: type[SetPasswordForm[User]] = PasswordChangeForm if has_one else SetPasswordForm
    made = form(request.user, data)
    for field in made.fields.values():
        field.widget.attrs.pop("autofocus", None)
    # Django's own is a list in HTML, where a sentence is wanted.
    made.fields["new_password1"].help_text = _(
        "At least 8 characters, and not easy to guess: three or four unexpected words work well."
    )
    made.fields["new_password2"].label = _("New password again")
    made.fields["new_password2"].help_text = ""
    return made


def _profile(
    request: ConsoleRequest,
    zone: TimeZoneForm,
    secret: SetPasswordForm[User],
    called: DisplayNameForm | None = None,
) -> HttpResponse:
    name = request.user.first_name
    context = {"section": "profile", "form": zone, "password_form": secret, "zones": zones()}
    context["first_password"] = first_passwords.options(request, request.user)
    context["name_form"] = called or DisplayNameForm(initial={"display_name": name})
    context |= proving(request.user) | connections(request.user)
    return render(request, "accounts/profile.html", context)


def connections(person: User) -> dict[str, Any]:
    """The profile's part on identity providers."""
    accounts = identities.connected_accounts(person)
    connected = {account.identity.issuer for account in accounts}
    others = [one for one in usable_providers() if one.issuer not in connected]
    return {"accounts": accounts, "providers": others}


def _with_link(request: ConsoleRequest, shown: User) -> HttpResponse:
    """Draws the page itself, without a redirect: the link is kept nowhere."""
    try:
        link = services.sign_in_link(shown, by=request.user)
    except services.AccountRefused as error:
        messages.error(request, str(error))
        return redirect("accounts:person", shown.pk)
    return _show(request, shown, GroupsForm(initial={"groups": shown.groups.all()}), link=link)


def _show(request: ConsoleRequest, shown: User, form: GroupsForm, link: str = "") -> HttpResponse:
    context = {
        "section": "people",
        "person": shown,
        "form": form,
        "link": link,
        "rename": RenameForm(initial={"name": shown.username}),
        "former": shown.names.exclude(name=shown.username),
        "hours": services.LINK_HOURS,
        "agents": shown.agents.all(),
        "requests": shown.role_changes.filter(state=RoleChange.State.REQUESTED),
        "accounts": identities.connected_accounts(shown),
        "lasting": []
        if shown.is_active
        else issued_tokens.lasting_tokens(shown, reader=request.user),
        "no_link": services.why_no_link(shown),
        "no_confirmation": independence.why_not_confirm(shown, request.user),
        "passkeys": shown.passkeys.usable().count(),
        "codes": CodeApp.objects.filter(person=shown).exclude(confirmed_at=None).exists(),
    }
    return render(request, "accounts/person.html", context)
