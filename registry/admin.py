"""The boiler room shows the registry. What changes it goes through registry/services.py, which
seals, holds and records; a form that saved rows would do none of these."""

from __future__ import annotations

from django.contrib import admin

from audit.admin import ReadOnlyAdmin
from registry.models import Definition, Discovery, Publication, Server, Tool, Toolset


@admin.register(Server)
class ServerAdmin(ReadOnlyAdmin):
    list_display = ["slug", "transport", "url", "command", "owner", "enabled", "health"]
    list_select_related = ["owner"]


@admin.register(Tool)
class ToolAdmin(ReadOnlyAdmin):
    list_display = ["exposed_name", "state", "mode", "safe_to_repeat", "timeout_s"]
    list_filter = ["state", "server"]
    search_fields = ["exposed_name"]


@admin.register(Definition)
class DefinitionAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "digest", "first_seen_at"]
    list_select_related = ["tool"]


@admin.register(Publication)
class PublicationAdmin(ReadOnlyAdmin):
    list_display = ["definition", "person", "at"]
    list_select_related = ["definition__tool", "person"]


@admin.register(Discovery)
class DiscoveryAdmin(ReadOnlyAdmin):
    list_display = ["server", "at", "succeeded", "summary"]
    list_filter = ["succeeded", "server"]


@admin.register(Toolset)
class ToolsetAdmin(ReadOnlyAdmin):
    list_display = ["slug", "title", "created_at"]
