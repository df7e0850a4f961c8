"""Names of permissions for people, in the groups in which pages list them.

English; pages translate them. No page gives a role or a service account another permission.
"""

from __future__ import annotations

from typing import NamedTuple

from django.utils.translation import gettext_noop as _


class PermissionGroup(NamedTuple):
    label: str
    # Permission, as `has_perm` takes it → its name.
    permissions: dict[str, str]


PERMISSION_GROUPS = [
    PermissionGroup(
        _("Servers, tools and toolsets"),
        {
            "registry.view_server": _("View servers"),
            "registry.view_tool": _("View tools"),
            "registry.view_definition": _("View definitions"),
            "registry.view_publication": _("View publications"),
            "registry.view_discovery": _("View discoveries"),
            "registry.view_toolset": _("View toolsets"),
            "registry.add_server": _("Register servers"),
            "registry.change_server": _("Change servers"),
            "registry.operate_server": _("Refresh servers and publish definitions"),
            "registry.change_tool": _("Set how a tool's calls are handled"),
            "registry.add_toolset": _("Create toolsets"),
            "registry.change_toolset": _("Change toolsets"),
            "registry.delete_toolset": _("Delete toolsets"),
        },
    ),
    PermissionGroup(
        _("Calls and approvals"),
        {
            "calls.view_call": _("View calls"),
            "calls.view_payload": _("View arguments and results"),
            "calls.view_received": _("View results as received, before cleaning"),
            "calls.erase_payload": _("Erase arguments and results of calls that have ended"),
            "calls.cancel_call": _("Cancel calls and record outcomes"),
            "calls.begin_freeze": _("Begin an emergency stop"),
            "calls.end_freeze": _("End an emergency stop"),
            "approvals.view_approval": _("View approvals"),
            "approvals.decide_approval": _("Approve and deny calls"),
            "approvals.break_glass": _("Use break-glass: approve a pending call alone"),
            "approvals.view_grant": _("View standing approvals"),
            "approvals.revoke_grant": _("Revoke standing approvals of others"),
        },
    ),
    PermissionGroup(
        _("Policies"),
        {
            "policies.view_rule": _("View rules"),
            "policies.add_rule": _("Create rules"),
            "policies.change_rule": _("Change rules"),
            "policies.delete_rule": _("Delete rules"),
            "policies.view_limit": _("View limits"),
            "policies.add_limit": _("Create limits"),
            "policies.change_limit": _("Change limits"),
            "policies.delete_limit": _("Delete limits"),
            "policies.view_policyplan": _("View plans of policy files"),
            "policies.add_policyplan": _("Propose plans of policy files"),
            "policies.confirm_policyplan": _("Confirm plans of policy files"),
            "policies.apply_policyplan": _("Apply confirmed plans of policy files"),
        },
    ),
    PermissionGroup(
        _("Agents and service accounts"),
        {
            "accounts.view_agent": _("View agents"),
            "accounts.view_agenttoken": _("View agents' tokens"),
            "accounts.add_agent": _("Create agents"),
            "accounts.change_agent": _("Change agents"),
            "accounts.add_agenttoken": _("Issue agents' tokens"),
            "accounts.change_agenttoken": _("Rotate and revoke agents' tokens"),
            "accounts.view_serviceaccount": _("View service accounts"),
            "accounts.add_serviceaccount": _("Create service accounts"),
            "accounts.change_serviceaccount": _("Change service accounts and their tokens"),
        },
    ),
    PermissionGroup(
        _("Users and roles"),
        {
            "accounts.view_user": _("View users"),
            "accounts.add_user": _("Invite users"),
            "accounts.change_user": _("Change users and their roles"),
            "auth.view_group": _("View groups"),
            "auth.add_group": _("Create groups and roles"),
            "auth.change_group": _("Change groups and roles"),
            "accounts.view_access_review": _("View the access review"),
            "accounts.sign_access_review": _("Sign off the access review"),
        },
    ),
    PermissionGroup(
        _("Audit and notifications"),
        {
            "audit.view_entry": _("Read the audit log"),
            "audit.export_entry": _("Export the audit log"),
            "notifications.view_oncallschedule": _("View on-call schedules"),
            "notifications.change_oncallschedule": _("Change on-call schedules"),
            "notifications.change_escalationpolicy": _("Change escalation policies"),
            "notifications.view_webhook": _("View webhooks"),
            "notifications.add_webhook": _("Create webhooks"),
            "notifications.change_webhook": _("Change webhooks"),
            "notifications.delete_webhook": _("Delete webhooks"),
        },
    ),
]

PERMISSION_NAMES = {
    name: label for group in PERMISSION_GROUPS for name, label in group.permissions.items()
}
