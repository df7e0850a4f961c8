from django.contrib import admin

from approvals.models import Approval
from audit.admin import ReadOnlyAdmin


@admin.register(Approval)
class ApprovalAdmin(ReadOnlyAdmin):
    list_display = ["call", "state", "asked_at", "decide_by", "decided_by", "reason"]
    list_filter = ["state"]
