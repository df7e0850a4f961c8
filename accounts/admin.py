"""The boiler room for people, agents and tokens: to look, where the console has the verb."""

from __future__ import annotations

from typing import Any

# Registers its own page for groups, which is taken down here.
import django.contrib.auth.admin  # noqa: F401
from django.contrib import admin
from django.contrib.auth.models import Group
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from accounts import role_changes, services
from accounts.models import Agent, AgentToken, User
from accounts.roles import Role
from audit.admin import ReadOnlyAdmin
from audit.services import Actor, record


@admin.register(User)
class PersonAdmin(ReadOnlyAdmin):
    """People are invited, named, put into groups and disabled in the console."""

    list_display = ["username", "is_active", "last_login"]
    search_fields = ["username"]
    exclude = ["password", "first_name", "last_name", "email"]


admin.site.unregister(Group)


@admin.register(Group)
class TeamAdmin(ReadOnlyAdmin):
    """Groups of people that rules may name. What people may do is fixed by the roles, which are set
    by code (accounts/roles.py): no page gives a group a permission."""

    list_display = ["name"]
    search_fields = ["name"]
    actions = None

    def get_fields(self, request: HttpRequest, obj: Group | None = None) -> Any:
        return ["name"] if obj is None else ["name", "permissions"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return _person(request).has_perm("auth.add_group")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        if isinstance(obj, Group) and (obj.name in set(Role) or hasattr(obj, "custom_role")):
            return False
        return _person(request).has_perm("auth.delete_group")

    def save_related(
        self, request: HttpRequest, form: ModelForm[Group], formsets: Any, change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        record("group.created", actor=_actor(request), group=form.instance.name)

    def delete_model(self, request: HttpRequest, obj: Group) -> None:
        people = list(obj.user_set.order_by("username"))
        for person in people:
            role_changes.take(person, [obj], by=_person(request))
        names = [person.username for person in people]
        record("group.removed", actor=_actor(request), group=obj.name, people=names)
        super().delete_model(request, obj)


@admin.register(Agent)
class AgentAdmin(ReadOnlyAdmin):
    list_display = ["name", "owner", "enabled", "created_at"]
    list_select_related = ["owner"]
    actions = ["enable", "disable"]

    @admin.action(description=_("Enable"), permissions=["steer"])
    def enable(self, request: HttpRequest, agents: QuerySet[Agent]) -> None:
        for agent in agents:
            services.set_agent_enabled(agent, True, by=_person(request))

    @admin.action(description=_("Disable"), permissions=["steer"])
    def disable(self, request: HttpRequest, agents: QuerySet[Agent]) -> None:
        for agent in agents:
            services.set_agent_enabled(agent, False, by=_person(request))

    def has_steer_permission(self, request: HttpRequest) -> bool:
        return _person(request).has_perm("accounts.change_agent")


@admin.register(AgentToken)
class AgentTokenAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "agent", "created_at", "expires_at", "revoked_at", "last_used_at"]
    list_select_related = ["agent"]
    exclude = ["digest"]
    actions = ["revoke"]

    @admin.action(description=_("Revoke"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[AgentToken]) -> None:
        for token in tokens.select_related("agent"):
            services.revoke_token(token, by=_person(request))

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return _person(request).has_perm("accounts.change_agenttoken")


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


def _actor(request: HttpRequest) -> Actor:
    return _person(request).actor
