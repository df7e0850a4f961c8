"""The boiler room shows rules; the console changes them (policies/views/rules.py)."""

from __future__ import annotations

from django.contrib import admin

from audit.admin import ReadOnlyAdmin
from policies.models import Rule


@admin.register(Rule)
class RuleAdmin(ReadOnlyAdmin):
    list_display = ["position", "name", "effect", "server", "tool", "hint", "when", "mode"]
    list_display_links = ["name"]
