"""Pages that say in figures what follows from an act, before a press of their button does it.

They change nothing: each form posts to the view that does. They are here since they count what
the packages of agents, servers and people do not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts import sessions
from accounts.http import ConsoleRequest
from accounts.models import Agent, BrowserSession, ScimToken, ServiceToken, User
from accounts.views.agents import agent_for_tokens
from approvals import consequences, freezes, standing_approvals
from approvals.consequences import Consequences
from approvals.models import Grant
from core.http import is_htmx, page
from policies.models import Rule
from registry.models import Server


@dataclass(frozen=True, slots=True)
class Confirmation:
    """One page; `crumbs` are pairs of a label and an address, `fields` pairs that are posted."""

    section: str
    title: str
    crumbs: Sequence[tuple[str, str]]
    consequences: Consequences
    action: str
    button: str
    back: str
    fields: Sequence[tuple[str, str]] = ()
    reason_hint: str = ""
    is_reason_required: bool = False
    takes_reason: bool = True


@page("accounts.change_agent")
def disable_agent(request: ConsoleRequest, name: str) -> HttpResponse:
    agent = get_object_or_404(Agent, name=name)
    there = reverse("accounts:agent", args=[name])
    if not agent.enabled:
        return redirect(there)
    return show(
        request,
        Confirmation(
            "agents",
            _("Disable agent %s?") % name,
            [*_under_settings(_("Agents"), "accounts:agents"), (name, there)],
            consequences.of_agent(agent),
            reverse("accounts:set_agent_enabled", args=[name]),
            _("Disable the agent"),
            there,
            [("enabled", "0")],
        ),
    )


@page("")
def revoke_token(request: ConsoleRequest, name: str, public_id: str) -> HttpResponse:
    agent = agent_for_tokens(request.user, name)
    tokens = agent.tokens.filter(revoked_at=None).select_related("agent")
    token = get_object_or_404(tokens, public_id=public_id)
    there = reverse("accounts:agent", args=[name])
    return show(
        request,
        Confirmation(
            "agents",
            _("Revoke token %s?") % token,
            [*_under_settings(_("Agents"), "accounts:agents"), (name, there)],
            consequences.of_token(token),
            reverse("accounts:revoke_token", args=[name, public_id]),
            _("Revoke the token"),
            there,
        ),
    )


@page("accounts.change_serviceaccount")
def revoke_service_token(request: ConsoleRequest, name: str, public_id: str) -> HttpResponse:
    tokens = ServiceToken.objects.filter(account__name=name, revoked_at=None)
    token = get_object_or_404(tokens.select_related("account"), public_id=public_id)
    there = reverse("accounts:service_account", args=[name])
    return show(
        request,
        Confirmation(
            "service_accounts",
            _("Revoke token %s?") % token,
            [*_under_settings(_("Service accounts"), "accounts:service_accounts"), (name, there)],
            consequences.of_service_token(token),
            reverse("accounts:revoke_service_token", args=[name, public_id]),
            _("Revoke the token"),
            there,
        ),
    )


@page("accounts.change_user")
def revoke_scim_token(request: ConsoleRequest, public_id: str) -> HttpResponse:
    token = get_object_or_404(ScimToken.objects.filter(revoked_at=None), public_id=public_id)
    return show(
        request,
        Confirmation(
            "provisioning",
            _("Revoke token %s?") % token,
            _under_settings(_("Provisioning"), "accounts:provisioning"),
            consequences.of_scim_token(token),
            reverse("accounts:revoke_scim_token", args=[public_id]),
            _("Revoke the token"),
            reverse("accounts:provisioning"),
            takes_reason=False,
        ),
    )


@page("approvals.view_grant")
def revoke_grant(request: ConsoleRequest, pk: int) -> HttpResponse:
    grant = get_object_or_404(Grant.objects.not_ended(), pk=pk)
    if not standing_approvals.may_revoke(grant, request.user):
        raise PermissionDenied
    return show(
        request,
        Confirmation(
            "grants",
            _("Revoke standing approval %d?") % pk,
            _under_settings(_("Standing approvals"), "approvals:grants"),
            consequences.of_grants([grant]),
            reverse("approvals:revoke", args=[pk]),
            _("Revoke the standing approval"),
            reverse("approvals:grants"),
            takes_reason=False,
        ),
    )


@page("approvals.view_grant")
def revoke_grants(request: ConsoleRequest) -> HttpResponse:
    """One's own; everybody's with the permission and if the address says so."""
    chosen, whose = Grant.objects.not_ended(), request.GET.get("whose", "mine")
    if whose != "all":
        chosen = chosen.filter(owner=request.user)
    elif not request.user.has_perm("approvals.revoke_grant"):
        raise PermissionDenied
    title = _("Revoke the standing approvals of all users?")
    return show(
        request,
        Confirmation(
            "grants",
            title if whose == "all" else _("Revoke all of your standing approvals?"),
            _under_settings(_("Standing approvals"), "approvals:grants"),
            consequences.of_grants(chosen),
            reverse("approvals:revoke_all"),
            _("Revoke the standing approvals"),
            reverse("approvals:grants"),
            [("whose", whose)],
            takes_reason=False,
        ),
    )


@page("")
def end_session(request: ConsoleRequest, pk: int) -> HttpResponse:
    own = BrowserSession.objects.filter(person=request.user)
    session = get_object_or_404(own.exclude(key=request.session.session_key), pk=pk)
    title = _("End the session “%s”?") % f"{session.device} {session.address}".strip()
    action = reverse("accounts:end_session", args=[pk])
    return show(request, _of_sessions(title, action, _("End the session"), 1))


@page("")
def end_other_sessions(request: ConsoleRequest) -> HttpResponse:
    others = len(sessions.list_open(request.user)) - 1
    if others < 1:
        return redirect("accounts:sessions")
    title, action = _("End all other sessions?"), reverse("accounts:end_other_sessions")
    return show(request, _of_sessions(title, action, _("End all other sessions"), others))


def _of_sessions(title: str, action: str, button: str, ended: int) -> Confirmation:
    there = reverse("accounts:sessions")
    crumbs = [
        *_under_settings(_("Your profile"), "accounts:profile"),
        (_("Sessions"), there),
    ]
    figures = consequences.of_sessions(ended)
    return Confirmation(
        "profile", title, crumbs, figures, action, button, there, takes_reason=False
    )


@page("registry.change_server")
def disable_server(request: ConsoleRequest, slug: str) -> HttpResponse:
    server = get_object_or_404(Server, slug=slug)
    there = reverse("registry:server", args=[slug])
    if not server.enabled:
        return redirect(there)
    return show(
        request,
        Confirmation(
            "servers",
            _("Disable server %s?") % slug,
            [
                (_("Catalogue"), reverse("registry:catalogue")),
                (_("Servers"), reverse("registry:servers")),
                (slug, there),
            ],
            consequences.of_server(server),
            reverse("registry:set_server_enabled", args=[slug]),
            _("Disable the server"),
            there,
            [("enabled", "0")],
        ),
    )


@page("accounts.change_user")
def disable_person(request: ConsoleRequest, pk: int) -> HttpResponse:
    person = get_object_or_404(User, pk=pk)
    there = reverse("accounts:person", args=[pk])
    if not person.is_active:
        return redirect(there)
    return show(
        request,
        Confirmation(
            "people",
            _("Disable user %s?") % person.username,
            [*_under_settings(_("Users"), "accounts:people"), (person.username, there)],
            consequences.of_person(person, by=request.user),
            reverse("approvals:set_person_active", args=[pk]),
            _("Disable the user"),
            there,
            [("active", "0")],
        ),
    )


@page(freezes.BEGIN)
def emergency_stop(request: ConsoleRequest) -> HttpResponse:
    """The address names the things to suspend; without, nothing is chosen."""
    what = request.GET.get("what", "")
    kind, _colon, name = what.partition(":")
    if kind not in ("agent", "server", "everything"):
        messages.warning(request, _("Say what to suspend."))
        return redirect("approvals:freezes")
    agent = get_object_or_404(Agent, name=name) if kind == "agent" else None
    server = get_object_or_404(Server, slug=name) if kind == "server" else None
    return show(
        request,
        Confirmation(
            "freezes",
            _stop_title(agent, server),
            _under_settings(_("Emergency stops"), "approvals:freezes"),
            consequences.of_stop(request.user, agent, server),
            reverse("approvals:freeze"),
            _("Begin emergency stop"),
            reverse("approvals:freezes"),
            [("what", what)],
            reason_hint=_("Agents and everybody in the console read it."),
            is_reason_required=True,
        ),
    )


@page("policies.delete_rule")
def rule_removal(request: HttpRequest, pk: int) -> HttpResponse:
    """A piece for the page that confirms a rule's removal, and a page of its own."""
    rule = get_object_or_404(Rule, pk=pk)
    context = {"section": "rules", "rule": rule, "consequences": consequences.of_rule(rule)}
    whole = "approvals/rule_removal.html"
    return render(request, f"{whole}#figures" if is_htmx(request) else whole, context)


def _under_settings(label: str, there: str) -> list[tuple[str, str]]:
    return [(_("Settings"), reverse("accounts:settings")), (label, reverse(there))]


def _stop_title(agent: Agent | None, server: Server | None) -> str:
    if agent:
        return _("Suspend agent %s?") % agent.name
    if server:
        return _("Suspend server %s?") % server.slug
    return _("Suspend everything?")


def show(request: HttpRequest, confirmation: Confirmation) -> HttpResponse:
    context = {"section": confirmation.section, "confirmation": confirmation}
    return render(request, "approvals/confirmation.html", context)
