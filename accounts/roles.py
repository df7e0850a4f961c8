"""The permissions of each role.

No role follows from another: an administrator who shall also decide calls is made an approver.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from django.conf import settings
from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.utils.translation import gettext, gettext_lazy, gettext_noop, override

from audit.services import SYSTEM, record
from core.english import gettext as english_gettext


class Role(StrEnum):
    """The names of their groups; pages show them in the reader's language."""

    ADMINISTRATOR = gettext_noop("Administrator")
    OPERATOR = gettext_noop("Operator")
    APPROVER = gettext_noop("Approver")
    AUDITOR = gettext_noop("Auditor")
    VIEWER = gettext_noop("Viewer")


DESCRIPTIONS = {
    Role.ADMINISTRATOR: gettext_lazy(
        "Manages users, roles, agents, rules, limits and notifications, and reads the audit log. "
        "Decides no calls."
    ),
    Role.OPERATOR: gettext_lazy(
        "Registers servers, publishes definitions, and manages toolsets, agents and webhooks. "
        "Begins and ends emergency stops."
    ),
    Role.APPROVER: gettext_lazy(
        "Approves and denies calls, and sees their arguments and results. Begins emergency stops."
    ),
    Role.AUDITOR: gettext_lazy(
        "Reads and exports the audit log, with arguments and results, and signs off access "
        "reviews. Changes nothing else."
    ),
    Role.VIEWER: gettext_lazy(
        "Sees servers, tools, toolsets and the list of calls, but no arguments and no results. "
        "Every role may do this too."
    ),
}


def shown_names() -> Iterator[str]:
    """The names of the roles as pages show them, in every language."""
    for language, _name in settings.LANGUAGES:
        with override(language):
            yield from (gettext(role) for role in Role)


_EVERYBODY = {
    *(
        f"registry.view_{model}"
        for model in ("server", "tool", "definition", "publication", "discovery", "toolset")
    ),
    "calls.view_call",
}
_AGENTS = {f"accounts.{verb}_{m}" for verb in ("add", "change") for m in ("agent", "agenttoken")}
_SEE_AGENTS = {"accounts.view_agent", "accounts.view_agenttoken"}
_SEE_RULES = {"policies.view_rule", "policies.view_limit"}
_SEE_SERVICE_ACCOUNTS = {"accounts.view_serviceaccount"}
_SEE_ACCESS = {"accounts.view_access_review"}
_WEBHOOKS = {f"notifications.{verb}_webhook" for verb in ("add", "change", "delete", "view")}
_SEE_ON_CALL = {"notifications.view_oncallschedule"}

PERMISSIONS: dict[Role, set[str]] = {
    Role.VIEWER: _EVERYBODY,
    Role.ADMINISTRATOR: _EVERYBODY
    | _AGENTS
    | _SEE_AGENTS
    | _SEE_ACCESS
    | _WEBHOOKS
    | _SEE_ON_CALL
    | {"notifications.change_escalationpolicy", "notifications.change_oncallschedule"}
    | {f"accounts.{verb}_user" for verb in ("add", "change", "view")}
    | {f"auth.{verb}_group" for verb in ("add", "change", "view")}
    | {f"accounts.{verb}_serviceaccount" for verb in ("add", "change", "view")}
    | {
        f"policies.{verb}_{model}"
        for verb in ("add", "change", "delete", "view")
        for model in ("rule", "limit")
    }
    | {f"policies.{verb}_policyplan" for verb in ("view", "add", "confirm", "apply")}
    | {"calls.cancel_call", "calls.begin_freeze", "calls.end_freeze", "audit.view_entry"}
    | {"approvals.view_grant", "approvals.revoke_grant"},
    Role.OPERATOR: _EVERYBODY
    | _AGENTS
    | _SEE_AGENTS
    | _SEE_RULES
    | _WEBHOOKS
    | _SEE_ON_CALL
    | {"registry.add_server", "registry.change_server", "registry.change_tool"}
    | {f"registry.{verb}_toolset" for verb in ("add", "change", "delete")}
    | {"registry.operate_server", "calls.cancel_call"}
    | {"policies.view_policyplan", "policies.add_policyplan"}
    | {"calls.begin_freeze", "calls.end_freeze"},
    Role.APPROVER: _EVERYBODY
    | _SEE_RULES
    | _SEE_ON_CALL
    | {"approvals.decide_approval", "approvals.view_approval", "calls.view_payload"}
    | {"approvals.view_grant", "calls.begin_freeze"},
    Role.AUDITOR: _EVERYBODY
    | _SEE_AGENTS
    | _SEE_SERVICE_ACCOUNTS
    | _SEE_ACCESS
    | {"accounts.sign_access_review"}
    | _SEE_RULES
    | _SEE_ON_CALL
    | {"accounts.view_user", "auth.view_group", "approvals.view_approval", "calls.view_payload"}
    | {"calls.view_received", "calls.erase_payload"}
    | {"audit.view_entry", "audit.export_entry", "approvals.view_grant"}
    | {"policies.view_policyplan"}
    | {"notifications.view_webhook"},
}


@transaction.atomic
def ensure_roles() -> list[Role]:
    """Make the groups and give each exactly its permissions; returns those that were not so."""
    known = {
        f"{app}.{codename}": pk
        for app, codename, pk in Permission.objects.values_list(
            "content_type__app_label", "codename", "pk"
        )
    }
    changed = [
        role for role, names in PERMISSIONS.items() if _ensure(role, {known[n] for n in names})
    ]
    for role in changed:
        why = english_gettext("The permissions of %(role)s were set.") % {"role": role}
        record("role.set", actor=SYSTEM, reason=why, role=role)
    return changed


def _ensure(role: Role, permissions: set[int]) -> bool:
    group, created = Group.objects.get_or_create(name=role)
    if set(group.permissions.values_list("pk", flat=True)) == permissions:
        return created
    group.permissions.set(permissions)
    return True
