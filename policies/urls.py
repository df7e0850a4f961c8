from django.urls import path

from policies.views import limits, rules, simulator

app_name = "policies"

urlpatterns = [
    path("policies/", rules.rules, name="rules"),
    path("policies/covers/", rules.covers, name="covers"),
    path("policies/explain/", simulator.explain, name="explain"),
    path("policies/would/<tool:tool>/", simulator.evaluate, name="would"),
    path("new/rule/", rules.add_rule, name="add_rule"),
    path("policies/<int:pk>/", rules.rule, name="rule"),
    path("policies/<int:pk>/move/", rules.move, name="move_rule"),
    path("policies/<int:pk>/remove/", rules.remove, name="remove_rule"),
    path("limits/", limits.limits, name="limits"),
    path("new/limit/", limits.add_limit, name="add_limit"),
    path("limits/<int:pk>/", limits.limit, name="limit"),
    path("limits/<int:pk>/change/", limits.edit_limit, name="edit_limit"),
    path("limits/<int:pk>/switch/", limits.switch_limit, name="switch_limit"),
    path("limits/<int:pk>/remove/", limits.remove_limit, name="remove_limit"),
    path("agents/<slug:name>/limits/", limits.agent_limits, name="agent_limits"),
]
