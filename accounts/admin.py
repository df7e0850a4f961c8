"""The boiler room for people, agents and tokens. What is changed here is recorded too."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from accounts import services
from accounts.models import Agent, AgentToken, User
from audit.admin import ReadOnlyAdmin
from audit.services import Actor, record


@admin.register(User)
class PersonAdmin(UserAdmin):  # type: ignore[type-arg]
    """Nobody is removed, only switched off: entries and calls speak of people for good."""

    list_display = ["username", "email", "is_active", "last_login"]
    readonly_fields = ["last_login", "date_joined"]
    actions = None

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        # Else an administrator could take over somebody who may do more.
        if obj is not None and obj.is_superuser and not _is_superuser(request):
            return False
        return super().has_change_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        if _is_superuser(request):
            return self.readonly_fields
        return ["is_superuser", "user_permissions", *self.readonly_fields]

    def save_related(
        self, request: HttpRequest, form: ModelForm[User], formsets: Any, change: bool
    ) -> None:
        # Groups are saved only here, so the entry that names them is written here.
        super().save_related(request, form, formsets, change)
        record(
            "person.changed",
            actor=_actor(request),
            person=form.instance.username,
            fields=sorted(form.changed_data),
            groups=sorted(form.instance.groups.values_list("name", flat=True)),
            active=form.instance.is_active,
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        # People are invited in the console: with a password that somebody else chose they would
        # never be alone with their name.
        return False

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:  # noqa: A002
        raise PermissionDenied


admin.site.unregister(Group)


@admin.register(Group)
class RecordedGroupAdmin(GroupAdmin):
    """What a group may do is what people may do: each change is an entry."""

    actions = None

    def save_related(
        self, request: HttpRequest, form: ModelForm[Group], formsets: Any, change: bool
    ) -> None:
        before = set(_permissions(form.instance)) if change else set()
        super().save_related(request, form, formsets, change)
        after = set(_permissions(form.instance))
        record(
            "group.changed" if change else "group.created",
            actor=_actor(request),
            group=form.instance.name,
            given=sorted(after - before),
            taken=sorted(before - after),
        )

    def delete_model(self, request: HttpRequest, obj: Group) -> None:
        record(
            "group.removed",
            actor=_actor(request),
            group=obj.name,
            taken=sorted(_permissions(obj)),
            people=sorted(obj.user_set.values_list("username", flat=True)),
        )
        super().delete_model(request, obj)


def _permissions(group: Group) -> list[str]:
    return [
        f"{app}.{codename}"
        for app, codename in group.permissions.values_list("content_type__app_label", "codename")
    ]


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


def _is_superuser(request: HttpRequest) -> bool:
    return _person(request).is_superuser
