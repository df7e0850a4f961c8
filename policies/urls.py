from typing import Any

from django.urls import path

from policies.scope import CountCalls
from policies.views import limits, picks, rules, simulator, unusual


def urls(count_calls: CountCalls) -> tuple[list[Any], str]:
    """`count_calls` counts calls, which belong to a higher package (config/urls.py)."""
    counted = {"count_calls": count_calls}
    return [
        path("policies/", rules.rules, name="rules"),
        path("policies/covers/", rules.covers, counted, name="covers"),
        path("policies/picks/server/", picks.pick_server, name="pick_server"),
        path("policies/picks/tool/", picks.pick_tool, name="pick_tool"),
        path("policies/picks/exposed/", picks.pick_exposed, name="pick_exposed"),
        path("policies/explain/", simulator.explain, name="explain"),
        path("policies/would/<tool:tool>/", simulator.evaluate, name="would"),
        path("new/rule/", rules.add_rule, counted, name="add_rule"),
        path("policies/<int:pk>/", rules.rule, counted, name="rule"),
        path("policies/<int:pk>/move/", rules.move, name="move_rule"),
        path("policies/<int:pk>/remove/", rules.remove, name="remove_rule"),
        path("limits/", limits.limits, name="limits"),
        path("new/limit/", limits.add_limit, name="add_limit"),
        path("limits/<int:pk>/", limits.limit, name="limit"),
        path("limits/<int:pk>/change/", limits.edit_limit, name="edit_limit"),
        path("limits/<int:pk>/switch/", limits.switch_limit, name="switch_limit"),
        path("limits/<int:pk>/remove/", limits.remove_limit, name="remove_limit"),
        path("agents/<slug:name>/limits/", limits.agent_limits, name="agent_limits"),
        path("agents/<slug:name>/unusual/", unusual.agent_unusual, name="agent_unusual"),
        path("unusual-use/", unusual.unusual_agents, name="unusual"),
    ], "policies"
