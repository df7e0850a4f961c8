"""The object that a page's address names, with its tags."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import HttpRequest

from accounts.scopes import ScopeTarget
from calls.scope_targets import (
    agent_target,
    call_target,
    server_target,
    tool_target,
    toolset_target,
)

# Pages about the one object that their address names. Only on these a role that is limited to tags
# permits anything.
PAGES_OF_ONE = {
    f"{space}:{name}"
    for space, names in {
        "notifications": "notified",
        "accounts": (
            "agent set_agent_enabled set_agent_hold set_agent_dpop set_agent_team issue_token "
            "rotate_token revoke_token name_client add_workload"
        ),
        "registry": (
            "server items refresh tool tool_versions roll_back tool_policy publish tag_tool "
            "set_handling set_results set_labels operations set_document edit_server "
            "set_server_enabled set_server_relays set_server_results set_server_revision "
            "server_signature remove_signature server_sign_in connect_shared disconnect_shared "
            "review toolset tool_list connect set_toolset_own_tools "
            "set_toolset_hold set_toolset_title set_toolset_separator remove_tools shown_tool "
            "set_toolset_search_mode set_toolset_sign_in set_toolset_registry "
            "agent_toolsets agent_connect"
        ),
        "policies": "agent_limits agent_unusual",
        "approvals": (
            "detail card became approve step_up confirm_at_provider refuse edit new_grant "
            "take_back say talk disable_agent revoke_token disable_server cancel erase_payload"
        ),
        "calls": (
            "detail make_rule payload received piece resolve result arguments agent_usage "
            "server_usage delete_server usage of_tool trouble"
        ),
        "gateway": (
            "again try try_agent server_cases run_server_cases schedule_server run_tool_cases "
            "schedule_case case run_case delete_case"
        ),
    }.items()
    for name in names.split()
}
# These name other objects in their forms too: who sends them needs the permission everywhere. Each
# page below an object's address is in one of the two (tests/config/test_targets.py).
OF_MANY = {
    "registry:set_toolset_servers",
    "registry:set_toolset_agents",
    "registry:add_tools",
    # Whoever lets a call run alone has the right everywhere.
    "notifications:break_glass",
    "notifications:sign_break_glass",
}


class TargetMiddleware:
    """Says how to find it; only a person with a role that is limited to tags costs the query."""

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        match = request.resolver_match
        if match is None or match.view_name not in PAGES_OF_ONE:
            return
        for place, find in FINDERS.items():
            if match.route.startswith(place):
                found = partial(find, *(kwargs[name] for name in list(kwargs)[:1]))
                request.find_target = found  # type: ignore[attr-defined]


FINDERS: dict[str, Callable[[Any], ScopeTarget | None]] = {
    "servers/<slug:slug>/": server_target,
    "tools/<tool:name>/": tool_target,
    "toolsets/<slug:slug>/": toolset_target,
    "agents/<slug:name>/": agent_target,
    "calls/<uuid:call_id>/": call_target,
    "queue/<uuid:call_id>/": call_target,
}
