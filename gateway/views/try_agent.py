"""An agent for trying, in one press: with a toolset of its own that holds what its owner tries."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, F
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.text import slugify
from django.utils.translation import gettext as _

from accounts import services as accounts
from accounts.http import ConsoleRequest
from accounts.models import Agent, User
from core.http import page
from core.outage import recording
from registry import services
from registry.models import Tool, Toolset

PERMISSIONS = ("accounts.add_agent", "registry.add_toolset", "registry.change_toolset")


@page("registry.change_toolset", "POST")
def make_agent(request: ConsoleRequest, name: str) -> HttpResponse:
    if not request.user.has_perms(PERMISSIONS):
        raise PermissionDenied
    tool = get_object_or_404(Tool, exposed_name=name)
    with recording(request):
        agent = _give_tool(tool, request.user)
    messages.success(request, _("Your agent “%s” may use this tool now.") % agent.name)
    return redirect("gateway:try", name)


@transaction.atomic
def _give_tool(tool: Tool, person: User) -> Agent:
    """By the agent that was made for trying before, if there is one."""
    # Two presses at once make one agent.
    User.objects.select_for_update().get(pk=person.pk)
    toolset = _find_toolset(person) or _create_toolset(person)
    services.add_tool(toolset, tool, by=person)
    return toolset.agents.get()


def _find_toolset(person: User) -> Toolset | None:
    """One that no other agent uses, so that nobody else gets the tool by it."""
    named = Toolset.objects.filter(slug__startswith=_name_of(person))
    alone = named.alias(users=Count("agents")).filter(users=1)
    return alone.filter(agents__owner=person, agents__enabled=True, agents__name=F("slug")).first()


def _name_of(person: User) -> str:
    return f"{slugify(person.username)[:40] or f'user-{person.pk}'}-try"


def _create_toolset(person: User) -> Toolset:
    """With an agent of the same name: the first that no agent and no toolset has."""
    base = _name_of(person)
    taken = {*Agent.objects.filter(name__startswith=base).values_list("name", flat=True)}
    taken |= {*Toolset.objects.filter(slug__startswith=base).values_list("slug", flat=True)}
    names = (base, *(f"{base}-{n}" for n in range(2, len(taken) + 3)))
    name = next(name for name in names if name not in taken)
    toolset = services.create_toolset(name, by=person)
    agent = accounts.create_agent(name, owner=person, by=person)
    services.assign(toolset, agent, by=person)
    return toolset
