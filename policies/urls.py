from django.urls import path

from policies.views import rules, simulator

app_name = "policies"

urlpatterns = [
    path("policies/", rules.rules, name="rules"),
    path("policies/covers/", rules.covers, name="covers"),
    path("policies/explain/", simulator.explain, name="explain"),
    path("policies/would/<tool:tool>/", simulator.would, name="would"),
    path("new/rule/", rules.add_rule, name="add_rule"),
    path("policies/<int:pk>/", rules.rule, name="rule"),
    path("policies/<int:pk>/move/", rules.move, name="move_rule"),
    path("policies/<int:pk>/remove/", rules.remove, name="remove_rule"),
]
