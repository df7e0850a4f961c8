"""Mounted at /api/."""

from django.urls import path

from gateway.rest import service_api
from gateway.rest.api import Calls, Cancel, Explain, OneCall, Tools, ToolsetTools
from gateway.rest.approvals import Keys, OneApproval, StatementApprovals

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
    path("v1/me", service_api.Me.as_view(), name="me"),
    path("v1/servers", service_api.Servers.as_view(), name="servers"),
    path("v1/tools", service_api.ToolListing.as_view(), name="tool_list"),
    path("v1/toolsets", service_api.Toolsets.as_view(), name="toolset_list"),
    path("v1/agents", service_api.Agents.as_view(), name="agent_list"),
    path("v1/calls", service_api.CallList.as_view(), name="call_list"),
    path("v1/calls/<uuid:call_id>", service_api.CallDetail.as_view(), name="call_detail"),
    path("v1/calls/<uuid:call_id>/cancel", service_api.CancelCall.as_view(), name="cancel_call"),
    path("v1/approvals", service_api.Approvals.as_view(), name="approval_list"),
    path("v1/approvals/<uuid:call_id>/approve", service_api.Decide.as_view(), name="approve"),
    path("v1/approvals/<uuid:call_id>/deny", service_api.Decide.as_view(), name="deny"),
    path("v1/entries", service_api.Entries.as_view(), name="entries"),
]
