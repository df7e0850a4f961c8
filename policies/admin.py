from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest

from audit.services import Actor, record
from policies.models import Rule
from policies.services import facts, remove_rule


@admin.register(Rule)
class RuleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["position", "name", "effect", "server", "tool", "hint", "when", "mode"]
    list_display_links = ["name"]
    filter_horizontal = ["agents", "owner_groups"]
    actions = None

    def save_related(
        self, request: HttpRequest, form: ModelForm[Rule], formsets: Any, change: bool
    ) -> None:
        # Agents and groups are saved only here, so the entry that names them is written here.
        super().save_related(request, form, formsets, change)
        record("rule.saved", actor=_actor(request), **facts(form.instance))

    def delete_model(self, request: HttpRequest, obj: Rule) -> None:
        remove_rule(obj, by=_actor(request))


def _actor(request: HttpRequest) -> Actor:
    return Actor("person", request.user.pk, request.user.get_username())
