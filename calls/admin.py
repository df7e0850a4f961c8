from django.contrib import admin

from audit.admin import ReadOnlyAdmin
from calls.models import Call


@admin.register(Call)
class CallAdmin(ReadOnlyAdmin):
    list_display = ["asked_at", "agent", "tool_name", "state", "effect", "origin", "outcome"]
    list_filter = ["state", "effect", "origin"]
    # What was asked and what came back have pages, and a permission, of their own.
    exclude = ["arguments"]
