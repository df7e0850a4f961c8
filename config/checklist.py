"""The checklist of a new installation and what needs people, by facts of the database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.db import connection
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.models import User

# A figure says "100+": counting further would only cost.
COUNTED = 100
FACTS = f"""
    SELECT
        (SELECT count(*) FROM (
            SELECT FROM registry_tool WHERE state IN ('new', 'changed') LIMIT {COUNTED}) t),
        (SELECT count(*) FROM (
            SELECT FROM calls_call WHERE state = 'unknown' LIMIT {COUNTED}) c),
        (SELECT count(*) FROM calls_freeze WHERE ended_at IS NULL),
        (SELECT count(*) FROM registry_server WHERE enabled AND health = 'down'),
        (SELECT count(*) FROM registry_server WHERE enabled AND health = 'ok'),
        EXISTS (SELECT FROM registry_server WHERE health = 'ok'),
        EXISTS (SELECT FROM registry_tool WHERE state = 'published'),
        EXISTS (SELECT FROM registry_toolset_tools)
            OR EXISTS (SELECT FROM registry_toolset_servers),
        EXISTS (
            SELECT FROM accounts_agent a JOIN registry_toolset_agents t ON t.agent_id = a.id
            WHERE a.enabled),
        EXISTS (SELECT FROM policies_rule WHERE mode = 'enforce'),
        (SELECT id FROM calls_call ORDER BY id DESC LIMIT 1) IS NOT NULL,
        (SELECT count(*) FROM (
            SELECT FROM accounts_user u WHERE approvals_may_decide(u.id)
                AND COALESCE(u.unconfirmed_until, '-infinity') <= now() LIMIT 2) d) > 1,
        EXISTS (SELECT FROM notifications_mailrecipient WHERE confirmed_at IS NOT NULL)
            OR EXISTS (SELECT FROM notifications_webhook WHERE enabled)
            OR EXISTS (SELECT FROM notifications_pushdevice),
        (SELECT count(*) FROM (
            SELECT FROM notifications_delivery WHERE state = 'dead' LIMIT {COUNTED}) n),
        (SELECT count(*) FROM (
            SELECT FROM gateway_savedcase c JOIN gateway_caserun r ON r.id = c.last_run_id
            WHERE r.is_scheduled AND r.state IN ('failed', 'not_run') LIMIT {COUNTED}) s),
        (SELECT count(*) FROM gateway_caseschedule WHERE stopped <> ''),
        (SELECT count(*) FROM approvals_breakglass WHERE reviewed_at IS NULL),
        (SELECT count(*) FROM (SELECT FROM policies_unusualuse LIMIT {COUNTED}) u)
"""


class InstallationFacts(NamedTuple):
    to_review: int
    unresolved: int
    stops: int
    unreachable: int
    reachable: int
    has_server: bool
    has_published: bool
    has_toolset: bool
    has_agent: bool
    has_rule: bool
    has_call: bool
    has_two_approvers: bool
    has_receiver: bool
    undelivered: int
    failed_cases: int
    stopped_schedules: int
    glass_broken: int
    unusual: int


class ChecklistItem(NamedTuple):
    title: Any
    text: Any
    # Where it is done; empty for who may not do it.
    address: str
    is_done: bool


class _Kind(NamedTuple):
    fact: str
    title: Any
    text: Any
    address: str
    permission: str


KINDS = [
    _Kind(
        "has_server",
        _("Connect a server"),
        _("By its URL, by a command of the host, or by pasting what an MCP client has."),
        "registry:register",
        "registry.add_server",
    ),
    _Kind(
        "has_published",
        _("Publish a tool"),
        _("Agents get only tools that an operator has reviewed and published."),
        "registry:servers",
        "registry.operate_server",
    ),
    _Kind(
        "has_toolset",
        _("Add it to a toolset"),
        _("Agents connect to a toolset and get its tools."),
        "registry:toolsets",
        "registry.change_toolset",
    ),
    _Kind(
        "has_agent",
        _("Create an agent"),
        _("With its own token, and a toolset to connect to."),
        "accounts:add_agent",
        "accounts.add_agent",
    ),
    _Kind(
        "has_rule",
        _("Cover the tools with a rule"),
        _("Without a rule, every call needs an approval."),
        "policies:add_rule",
        "policies.add_rule",
    ),
    _Kind(
        "has_call",
        _("Make the first call"),
        _("From your MCP client, or by trying a tool in the console."),
        "registry:catalogue",
        "registry.view_tool",
    ),
    _Kind(
        "has_two_approvers",
        _("Invite a second approver"),
        _(
            "Nobody approves calls of their own agents. A first second approver is confirmed on "
            "the host: manage.py confirm_person."
        ),
        "accounts:invite",
        "accounts.add_user",
    ),
    _Kind(
        "has_receiver",
        _("Get notified"),
        _("By e-mail, on a device or by a webhook, without keeping a page open."),
        "notifications:webhooks",
        "notifications.add_webhook",
    ),
]


def read_facts() -> InstallationFacts:
    with connection.cursor() as cursor:
        cursor.execute(FACTS)
        return InstallationFacts(*cursor.fetchone())


def list_items(facts: InstallationFacts, person: User) -> Iterator[ChecklistItem]:
    """In the order in which they are done."""
    for kind in KINDS:
        address = reverse(kind.address) if person.has_perm(kind.permission) else ""
        yield ChecklistItem(kind.title, kind.text, address, getattr(facts, kind.fact))
