"""Pages that say in figures what follows from an act, before a press of their button does it.

They change nothing: each form posts to the view that does. They are here since they count what
the packages of agents, servers and people do not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from accounts.models import Agent, User
from accounts.views.agents import agent_for_tokens
from approvals import consequences, freezes
from approvals.consequences import Consequences
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


@page("accounts.change_agent")
def disable_agent(request: ConsoleRequest, name: str) -> HttpResponse:
    agent = get_object_or_404(Agent, name=name)
    there = reverse("accounts:agent", args=[name])
    if not agent.enabled:
        return redirect(there)
    return _show(
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
    return _show(
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


@page("registry.change_server")
def disable_server(request: ConsoleRequest, slug: str) -> HttpResponse:
    server = get_object_or_404(Server, slug=slug)
    there = reverse("registry:server", args=[slug])
    if not server.enabled:
        return redirect(there)
    return _show(
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
    return _show(
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
    return _show(
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


def _show(request: HttpRequest, confirmation: Confirmation) -> HttpResponse:
    context = {"section": confirmation.section, "confirmation": confirmation}
    return render(request, "approvals/confirmation.html", context)
