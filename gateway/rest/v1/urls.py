"""Mounted at /api/v1/: the API of service accounts."""

from __future__ import annotations

from django.urls import URLPattern, path

from gateway.rest.v1 import (
    agents,
    api_servers,
    calls,
    exports,
    policies,
    policy_files,
    review,
    server_imports,
    servers,
    stops,
    toolsets,
)

TOKEN = "agents/<slug:name>/tokens/<str:public_id>"  # noqa: S105 an address
ROUTES = (
    ("me", calls.Me, "me"),
    ("servers", servers.Servers, "servers"),
    ("servers/<slug:slug>", servers.OneServer, "server_detail"),
    ("servers/<slug:slug>/connection", servers.ConnectionOfServer, "server_connection"),
    ("servers/<slug:slug>/discoveries", servers.Discoveries, "discoveries"),
    ("servers/<slug:slug>/reviews", review.Reviews, "reviews"),
    ("servers/<slug:slug>/publications", review.Publications, "publications"),
    ("api-servers", api_servers.ApiServers, "api_servers"),
    ("imported-servers", server_imports.ImportedServers, "imported_servers"),
    ("servers/<slug:slug>/openapi", api_servers.ApiDocuments, "api_document"),
    ("servers/<slug:slug>/operations", api_servers.OfferedOperations, "offered_operations"),
    ("tools", review.ToolListing, "tool_list"),
    ("tools/<tool:tool>", review.OneTool, "tool_detail"),
    ("tools/<tool:tool>/definitions", review.Definitions, "definitions"),
    ("tools/<tool:tool>/difference", review.Difference, "difference"),
    ("toolsets", toolsets.Toolsets, "toolset_list"),
    ("toolsets/<slug:slug>", toolsets.OneToolset, "toolset_detail"),
    ("agents", agents.Agents, "agent_list"),
    ("agents/<slug:name>", agents.OneAgent, "agent_detail"),
    ("agents/<slug:name>/tokens", agents.Tokens, "tokens"),
    (f"{TOKEN}/rotate", agents.RotateToken, "rotate_token"),
    (f"{TOKEN}/revoke", agents.RevokeToken, "revoke_token"),
    ("rules", policies.RuleList, "rules"),
    ("rules/<int:pk>", policies.OneRule, "rule_detail"),
    ("limits", policies.LimitList, "limits"),
    ("limits/<int:pk>", policies.OneLimit, "limit_detail"),
    ("policy/export", policy_files.PolicyExport, "policy_export"),
    ("policy/schema.json", policy_files.PolicySchema, "policy_schema"),
    ("policy/difference", policy_files.PolicyDifference, "policy_difference"),
    ("policy/plans", policy_files.PolicyPlans, "policy_plans"),
    ("policy/plans/<slug:digest>", policy_files.OnePolicyPlan, "policy_plan_detail"),
    ("policy/plans/<slug:digest>/apply", policy_files.ApplyPolicyPlan, "apply_policy_plan"),
    ("emergency-stops", stops.EmergencyStops, "stops"),
    ("emergency-stops/<int:pk>", stops.OneEmergencyStop, "stop_detail"),
    ("emergency-stops/<int:pk>/end", stops.EndEmergencyStop, "end_stop"),
    ("standing-approvals", stops.StandingApprovals, "standing_approvals"),
    ("standing-approvals/<int:pk>", stops.OneStandingApproval, "standing_approval_detail"),
    ("standing-approvals/<int:pk>/revoke", stops.RevokeStandingApproval, "revoke_grant"),
    ("calls", calls.CallList, "call_list"),
    ("calls/<uuid:call_id>", calls.CallDetail, "call_detail"),
    ("calls/<uuid:call_id>/cancel", calls.CancelCall, "cancel_call"),
    ("approvals", calls.Approvals, "approval_list"),
    ("approvals/<uuid:call_id>/approve", calls.Approve, "approve"),
    ("approvals/<uuid:call_id>/deny", calls.Deny, "deny"),
    ("entries", calls.Entries, "entries"),
    ("exports", exports.Exports, "exports"),
    ("exports/<int:pk>", exports.OneExport, "export_detail"),
    ("exports/<int:pk>/file", exports.ExportFile, "export_file"),
)


def under(prefix: str) -> list[URLPattern]:
    return [path(prefix + route, view.as_view(), name=name) for route, view, name in ROUTES]
