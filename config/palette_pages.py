"""The console's pages, as search offers them."""

from __future__ import annotations

from typing import NamedTuple

from django.utils.translation import gettext_lazy as _


class PalettePage(NamedTuple):
    icon: str
    # Translated when it is shown.
    name: object
    address: str
    permission: str = ""
    query: str = ""


PAGES = [
    PalettePage("overview", _("Overview"), "overview", "calls.view_call"),
    PalettePage("catalogue", _("Catalogue"), "registry:catalogue", "registry.view_tool"),
    PalettePage("server", _("Servers"), "registry:servers", "registry.view_server"),
    PalettePage("queue", _("Queue"), "approvals:queue", "approvals.view_approval"),
    PalettePage("allow", _("Standing approvals"), "approvals:grants", "approvals.view_grant"),
    PalettePage(
        "workload", _("Approval workload"), "approvals:workload", "approvals.decide_approval"
    ),
    PalettePage("calls", _("Calls"), "calls:list", "calls.view_call"),
    PalettePage(
        "running", _("Calls that have not ended"), "calls:list", "calls.view_call", "?state=live"
    ),
    PalettePage("unknown", _("Unresolved calls"), "calls:unknown", "calls.view_call"),
    PalettePage("disabled", _("Emergency stops"), "approvals:freezes", "calls.view_call"),
    PalettePage("audit", _("Audit"), "audit:list", "audit.view_entry"),
    PalettePage("audit", _("Who ran what"), "audit:report", "audit.view_entry"),
    PalettePage("rule", _("Policies"), "policies:rules", "policies.view_rule"),
    PalettePage("rule", _("Policy simulator"), "policies:explain", "policies.view_rule"),
    PalettePage("add", _("New rule"), "policies:add_rule", "policies.add_rule"),
    PalettePage("limit", _("Limits"), "policies:limits", "policies.view_limit"),
    PalettePage("add", _("New limit"), "policies:add_limit", "policies.add_limit"),
    PalettePage("expired", _("Retention"), "approvals:retention", "calls.erase_payload"),
    PalettePage("agent", _("Agents"), "accounts:agents"),
    PalettePage("warning", _("Unusual use"), "policies:unusual"),
    PalettePage("add", _("New agent"), "accounts:add_agent", "accounts.add_agent"),
    PalettePage("toolset", _("Toolsets"), "registry:toolsets", "registry.view_toolset"),
    PalettePage("add", _("New toolset"), "registry:add_toolset", "registry.add_toolset"),
    PalettePage("server", _("Register a server"), "registry:register", "registry.add_server"),
    PalettePage("person", _("Users"), "accounts:people", "accounts.view_user"),
    PalettePage("sync", _("Provisioning"), "accounts:provisioning", "accounts.change_user"),
    PalettePage("person", _("Likely the same person"), "doubles", "accounts.change_user"),
    PalettePage("add", _("Invite user"), "accounts:invite", "accounts.add_user"),
    PalettePage("person", _("Roles"), "accounts:roles", "auth.view_group"),
    PalettePage("add", _("New role"), "accounts:add_role", "auth.add_group"),
    PalettePage(
        "audit", _("Access review"), "accounts:access_review", "accounts.view_access_review"
    ),
    PalettePage("audit", _("Who may do what"), "access"),
    PalettePage("settings", _("Tags for roles"), "registry:role_tags", "registry.view_server"),
    PalettePage(
        "key",
        _("Service accounts"),
        "accounts:service_accounts",
        "accounts.view_serviceaccount",
    ),
    PalettePage(
        "add",
        _("New service account"),
        "accounts:add_service_account",
        "accounts.add_serviceaccount",
    ),
    PalettePage("bell", _("Notifications"), "notifications:webhooks", "notifications.view_webhook"),
    PalettePage("add", _("New webhook"), "notifications:add_webhook", "notifications.add_webhook"),
    PalettePage(
        "add", _("New Slack app"), "notifications:add_slack_app", "notifications.add_webhook"
    ),
    PalettePage("settings", _("Settings"), "accounts:settings"),
    PalettePage("bell", _("Your notifications"), "notifications:profile"),
    PalettePage("person", _("Your sessions"), "accounts:sessions"),
    PalettePage("person", _("Your profile: time zone and password"), "accounts:profile"),
]
