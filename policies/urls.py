from django.urls import path

from policies import views, views_explain

app_name = "policies"

urlpatterns = [
    path("policies/", views.rules, name="rules"),
    path("policies/covers/", views.covers, name="covers"),
    path("policies/explain/", views_explain.explain, name="explain"),
    path("policies/would/<tool:tool>/", views_explain.would, name="would"),
    path("new/rule/", views.add_rule, name="add_rule"),
    path("policies/<int:pk>/", views.rule, name="rule"),
    path("policies/<int:pk>/move/", views.move, name="move_rule"),
    path("policies/<int:pk>/remove/", views.remove, name="remove_rule"),
]
