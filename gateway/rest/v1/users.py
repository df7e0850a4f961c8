"""Users: to read, and to disable. Accounts, roles and second factors are changed in the console."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group
from django.db.models import Exists, OuterRef, Prefetch, QuerySet
from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import CodeApp, Passkey, User
from accounts.relying_party import rp_id
from approvals import disabling
from core.english import gettext as _
from gateway.rest.v1 import plain
from gateway.rest.v1.members import Flag, Members, Text
from gateway.rest.v1.views import ListView, RowView, caller_of


class UserChange(Members):
    # Only `false`: a user who is enabled has their roles back, which no token gives.
    enabled = Flag()
    # In the entry.
    reason = Text(required=False, allow_blank=True, max_length=300)


class UserAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    display_name = serializers.CharField()
    enabled = serializers.BooleanField()
    # Roles and groups.
    groups = serializers.ListField(child=serializers.CharField())
    has_second_factor = serializers.BooleanField()
    invited_by = serializers.CharField(allow_null=True)
    joined_at = serializers.DateTimeField()
    last_signed_in_at = serializers.DateTimeField(allow_null=True)


class Users(ListView):
    scopes = {"GET": ("accounts.view_user",)}
    answers = {"GET": UserAnswer}
    rows = staticmethod(lambda request: _users())
    key = "username"
    cursor = str
    shown = staticmethod(plain.user)


class OneUser(RowView):
    """A user. Disabling ends their sessions, tokens, votes on pending calls and open calls."""

    scopes = {"GET": ("accounts.view_user",), "PATCH": ("accounts.change_user",)}
    bodies = {"PATCH": UserChange}
    answers = {"GET": UserAnswer, "PATCH": UserAnswer}
    volatile = ("last_signed_in_at",)

    def row(self, request: Request, user: str) -> Any:
        return _user(user)

    def plain(self, row: User) -> dict[str, Any]:
        return plain.user(row)

    def patch(self, request: Request, user: str) -> Response:
        return self.changed(request, lambda found: self._change(request, found), user=user)

    def _change(self, request: Request, user: User) -> Response:
        given = self.body(request)
        if given.get("enabled"):
            said = _("No token enables a user: a user does, signed in to the console.")
            raise ValidationError({"enabled": [said]})
        if "enabled" in given:
            reason = given.get("reason", "").strip()
            disabling.set_active(user, False, by=caller_of(request), reason=reason)
        return self.answer(_user(user.username))


def _users() -> QuerySet[Any]:
    passkeys = Passkey.objects.usable().filter(person=OuterRef("pk"), rp_id=rp_id())
    codes = CodeApp.objects.filter(person=OuterRef("pk")).exclude(confirmed_at=None)
    return (
        User.objects.annotate(has_factor=Exists(passkeys) | Exists(codes))
        .select_related("invited_by")
        .prefetch_related(Prefetch("groups", Group.objects.order_by("name")))
    )


def _user(name: str) -> Any:
    return get_object_or_404(_users(), username=name)
