"""Mounted at /api/."""

from django.urls import path, re_path

from gateway.rest.api import Calls, Cancel, Explain, OneCall, Tools, ToolsetTools
from gateway.rest.approvals import Keys, OneApproval, StatementApprovals
from gateway.rest.problems import Nothing
from gateway.rest.v1 import urls as v1
from gateway.rest.v1.document import OpenApi

app_name = "api"
urlpatterns = [
    path("approvals", StatementApprovals.as_view(), name="approvals"),
    path("approvals/keys", Keys.as_view(), name="approval_keys"),
    path("approvals/<uuid:call_id>", OneApproval.as_view(), name="approval"),
    path("calls", Calls.as_view(), name="calls"),
    path("calls/<uuid:call_id>", OneCall.as_view(), name="call"),
    path("calls/<uuid:call_id>/cancel", Cancel.as_view(), name="cancel"),
    path("explain", Explain.as_view(), name="explain"),
    path("tools", Tools.as_view(), name="tools"),
    path("toolsets/<slug:slug>/tools", ToolsetTools.as_view(), name="toolset_tools"),
    path("v1/openapi.json", OpenApi.as_view(), name="openapi"),
    *v1.under("v1/"),
    re_path("", Nothing.as_view(), name="nothing"),
]
