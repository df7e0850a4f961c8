"""Each route of the service API, with the permissions that it takes: by role and by scope.

A route without a row here fails, and so does a row without a route.
"""

from __future__ import annotations

from uuid import UUID

import pytest
from django.urls import reverse

from accounts import service_accounts
from accounts.models import ServiceAccount, User
from accounts.roles import PERMISSIONS, Role
from accounts.service_accounts import CHANGING, READING, SCOPES
from gateway.rest.v1 import urls
from tests.accounts import service_tokens
from tests.console import scenery
from tests.gateway.service_api import Program, program
from tests.mostly_long import mostly_long

pytestmark = pytest.mark.django_db

NOBODY = ("nobody",)
EXPORT = (
    "policies.view_rule",
    "policies.view_limit",
    "registry.view_server",
    "registry.view_tool",
    "registry.view_toolset",
    "accounts.view_agent",
    "notifications.view_oncallschedule",
)
# A plan shows that before and after, and names calls.
PLANS = ("policies.view_policyplan", "calls.view_call", *EXPORT)
ROWS: dict[tuple[str, str], tuple[str, ...]] = {
    ("me", "GET"): (),
    ("servers", "GET"): ("registry.view_server",),
    ("servers", "POST"): ("registry.add_server",),
    ("server_detail", "GET"): ("registry.view_server",),
    ("server_detail", "PATCH"): ("registry.change_server",),
    ("server_detail", "DELETE"): ("registry.change_server",),
    ("server_connection", "PUT"): ("registry.change_server",),
    ("server_sign_in", "GET"): ("registry.view_server",),
    ("server_sign_in", "PUT"): ("registry.change_server",),
    ("vouching", "GET"): ("registry.view_server",),
    ("signature_of_server", "PUT"): ("registry.change_server",),
    ("signature_of_server", "DELETE"): ("registry.change_server",),
    ("discoveries", "GET"): ("registry.view_discovery",),
    ("discoveries", "POST"): ("registry.operate_server",),
    ("api_servers", "POST"): ("registry.add_server",),
    ("imported_servers", "POST"): ("registry.add_server",),
    ("api_document", "GET"): ("registry.view_server",),
    ("api_document", "PUT"): ("registry.change_server",),
    ("offered_operations", "PUT"): ("registry.change_server",),
    ("reviews", "GET"): ("registry.operate_server",),
    ("publications", "POST"): ("registry.operate_server",),
    ("tool_list", "GET"): ("registry.view_tool",),
    ("tool_detail", "GET"): ("registry.view_tool",),
    ("definitions", "GET"): ("registry.view_definition",),
    ("difference", "GET"): ("registry.view_definition",),
    ("tool_tags", "GET"): ("registry.view_tool",),
    ("tool_tags", "PUT"): ("registry.change_tool",),
    ("tool_handling", "GET"): ("registry.view_tool",),
    ("tool_handling", "PATCH"): ("registry.operate_server",),
    ("tool_labels", "GET"): ("registry.view_tool",),
    ("tool_labels", "PATCH"): ("registry.operate_server",),
    ("tool_results", "GET"): ("registry.view_tool",),
    ("tool_results", "PATCH"): ("registry.operate_server",),
    ("tool_usage", "GET"): ("calls.view_call", "registry.view_tool"),
    ("server_usage", "GET"): ("calls.view_call", "registry.view_server"),
    ("agent_usage", "GET"): ("calls.view_call",),
    ("rule_usage", "GET"): ("calls.view_call", "policies.view_rule"),
    ("toolset_list", "GET"): ("registry.view_toolset",),
    ("toolset_list", "POST"): ("registry.add_toolset",),
    ("toolset_detail", "GET"): ("registry.view_toolset",),
    ("toolset_detail", "PATCH"): ("registry.change_toolset",),
    ("tools_of_toolset", "GET"): ("registry.view_toolset",),
    ("tool_override", "GET"): ("registry.view_toolset",),
    ("tool_override", "PATCH"): ("registry.change_toolset",),
    ("user_list", "GET"): ("accounts.view_user",),
    ("user_detail", "GET"): ("accounts.view_user",),
    ("user_detail", "PATCH"): ("accounts.change_user",),
    ("agent_list", "GET"): ("accounts.view_agent",),
    ("agent_list", "POST"): ("accounts.add_agent",),
    ("agent_detail", "GET"): ("accounts.view_agent",),
    ("agent_detail", "PATCH"): ("accounts.change_agent",),
    ("tokens", "GET"): ("accounts.view_agenttoken",),
    ("tokens", "POST"): ("accounts.add_agenttoken", "accounts.change_agenttoken"),
    ("rotate_token", "POST"): ("accounts.add_agenttoken", "accounts.change_agenttoken"),
    ("revoke_token", "POST"): ("accounts.change_agenttoken",),
    ("rules", "GET"): ("policies.view_rule",),
    ("rules", "POST"): ("policies.add_rule",),
    ("rule_detail", "GET"): ("policies.view_rule",),
    ("rule_detail", "PATCH"): ("policies.change_rule",),
    ("rule_detail", "DELETE"): ("policies.delete_rule",),
    ("limits", "GET"): ("policies.view_limit",),
    ("limits", "POST"): ("policies.add_limit",),
    ("limit_detail", "GET"): ("policies.view_limit",),
    ("limit_detail", "PATCH"): ("policies.change_limit",),
    ("limit_detail", "DELETE"): ("policies.delete_limit",),
    ("policy_export", "GET"): EXPORT,
    ("policy_schema", "GET"): (),
    ("policy_difference", "POST"): ("policies.add_policyplan", *EXPORT),
    ("policy_plans", "GET"): PLANS,
    ("policy_plans", "POST"): ("policies.add_policyplan", *PLANS),
    ("policy_plan_detail", "GET"): PLANS,
    ("apply_policy_plan", "POST"): ("policies.apply_policyplan", *PLANS),
    ("stops", "GET"): ("calls.view_call",),
    ("stops", "POST"): ("calls.begin_freeze",),
    ("stop_detail", "GET"): ("calls.view_call",),
    ("end_stop", "POST"): ("calls.end_freeze",),
    ("standing_approvals", "GET"): ("approvals.view_grant",),
    ("standing_approval_detail", "GET"): ("approvals.view_grant",),
    ("revoke_grant", "POST"): ("approvals.view_grant", "approvals.revoke_grant"),
    ("call_list", "GET"): ("calls.view_call",),
    ("call_detail", "GET"): ("calls.view_call",),
    ("cancel_call", "POST"): ("calls.cancel_call",),
    ("approval_list", "GET"): ("approvals.view_approval",),
    ("approve", "POST"): NOBODY,
    ("deny", "POST"): NOBODY,
    ("usage", "GET"): ("calls.view_call",),
    ("health", "GET"): ("calls.view_call", "registry.view_server"),
    ("webhook_list", "GET"): ("notifications.view_webhook",),
    ("webhook_list", "POST"): ("notifications.add_webhook",),
    ("webhook_detail", "GET"): ("notifications.view_webhook",),
    ("webhook_detail", "PATCH"): ("notifications.change_webhook",),
    ("webhook_detail", "DELETE"): ("notifications.delete_webhook",),
    ("rotate_webhook", "POST"): ("notifications.change_webhook",),
    ("test_webhook", "POST"): ("notifications.change_webhook",),
    ("webhook_deliveries", "GET"): ("notifications.view_webhook",),
    ("repeat_deliveries", "POST"): ("notifications.change_webhook",),
    ("repeat_delivery", "POST"): ("notifications.change_webhook",),
    ("failed_messages", "GET"): ("notifications.view_webhook",),
    ("repeat_messages", "POST"): ("notifications.change_webhook",),
    ("schedule_list", "GET"): ("notifications.view_oncallschedule",),
    ("schedule_list", "POST"): ("notifications.change_oncallschedule",),
    ("schedule_detail", "GET"): ("notifications.view_oncallschedule",),
    ("schedule_detail", "PATCH"): ("notifications.change_oncallschedule",),
    ("schedule_detail", "DELETE"): ("notifications.change_oncallschedule",),
    ("override_list", "GET"): ("notifications.view_oncallschedule",),
    ("override_list", "POST"): ("notifications.change_oncallschedule",),
    ("override_detail", "GET"): ("notifications.view_oncallschedule",),
    ("override_detail", "DELETE"): ("notifications.change_oncallschedule",),
    ("entries", "GET"): ("audit.view_entry",),
    ("exports", "GET"): ("audit.export_entry",),
    ("exports", "POST"): ("audit.export_entry",),
    ("export_detail", "GET"): ("audit.export_entry",),
    ("cancel_export", "POST"): ("audit.export_entry",),
    ("export_file", "GET"): ("audit.export_entry",),
}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
NAMED = {
    "slug": "x",
    "name": "x",
    "tool": "x.y",
    "pk": 1,
    "digest": "x",
    "public_id": "x",
    "call_id": UUID(int=7),
    "user": "x",
    "webhook": UUID(int=7),
    "delivery": UUID(int=7),
    "schedule": UUID(int=7),
    "override": UUID(int=7),
}


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", *Role)


def opening() -> dict[tuple[str, str], tuple[str, ...]]:
    return {key: row for key, row in ROWS.items() if row != NOBODY}


def path_of(name: str) -> str:
    route = next(route for route, _view, known in urls.ROUTES if known == name)
    parts = {key: value for key, value in NAMED.items() if f":{key}>" in route}
    return reverse(f"api:{name}", kwargs=parts).removeprefix("/api/v1/")


def status(asking: Program, name: str, method: str) -> int:
    answer = asking.ask(method, path_of(name), None if method == "GET" else {})
    assert answer.status_code < 500
    return int(answer.status_code)


def is_opened(asking: Program, name: str, method: str) -> bool:
    """Whatever was wrong with the request, it was not the token."""
    return status(asking, name, method) not in (401, 403, 405)


def test_no_token_decides(ada: User) -> None:
    for name, method in (key for key, row in ROWS.items() if row == NOBODY):
        # That one exists is told to nobody either.
        assert status(program(name, ada), name, method) == 404


def test_each_route_has_a_row() -> None:
    routes = {(name, method) for _route, view, name in urls.ROUTES for method in view.scopes}

    assert routes == set(ROWS)


def test_every_permission_that_accounts_can_have_opens_something() -> None:
    assert {scope for row in opening().values() for scope in row} == set(SCOPES)


def test_what_reads_takes_no_permission_to_change_and_the_other_way_round() -> None:
    for (name, method), row in ROWS.items():
        reads = method == "GET" and name != "reviews"
        wanted: tuple[str, ...] = (
            READING if reads or name in ("exports", "cancel_export") else CHANGING
        )
        if name in ("policy_difference", "policy_plans", "apply_policy_plan"):
            # Their answers show what is there.
            wanted = (*READING, *CHANGING)
        if name not in ("approve", "deny", "revoke_grant"):
            assert set(row) <= set(wanted), name


@pytest.mark.long
@pytest.mark.parametrize("role", mostly_long(Role, Role.VIEWER, Role.OPERATOR))
def test_a_token_opens_what_its_creators_role_does(role: Role, ada: User) -> None:
    account = service_accounts.create("robot", purpose="All of it", scopes=SCOPES, by=ada)
    asking = Program(service_tokens.issue(account, by=scenery.person("pat", role)))

    for (name, method), row in opening().items():
        assert is_opened(asking, name, method) == (set(row) <= PERMISSIONS[role]), (name, method)


@pytest.mark.long
def test_each_permission_of_a_route_is_needed_and_all_of_them_are_enough(ada: User) -> None:
    account = service_accounts.create("robot", purpose="Some of it", scopes=SCOPES, by=ada)
    asking = Program(service_tokens.issue(account, by=ada))

    for (name, method), row in opening().items():
        for missing in row:
            scope(account, *(one for one in SCOPES if one != missing))
            assert status(asking, name, method) == 403, (name, method, missing)
        if row:
            scope(account, *row)
            assert is_opened(asking, name, method), (name, method)


@pytest.mark.long
def test_no_other_method_does_anything(ada: User) -> None:
    asking = program("robot", ada)

    for name in {name for name, _method in ROWS}:
        for method in METHODS:
            if (name, method) not in ROWS:
                assert status(asking, name, method) == 405, (name, method)


@pytest.mark.long
def test_nothing_is_opened_without_a_token(db: None) -> None:
    for name, method in ROWS:
        assert status(Program(""), name, method) == 401, (name, method)


def scope(account: ServiceAccount, *scopes: str) -> None:
    ServiceAccount.objects.filter(pk=account.pk).update(scopes=list(scopes))
