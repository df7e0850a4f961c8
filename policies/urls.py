from django.urls import path

from policies import views

app_name = "policies"

urlpatterns = [
    path("policies/", views.rules, name="rules"),
    path("policies/covers/", views.covers, name="covers"),
    path("new/rule/", views.add_rule, name="add_rule"),
    path("policies/<int:pk>/", views.rule, name="rule"),
    path("policies/<int:pk>/move/", views.move, name="move_rule"),
    path("policies/<int:pk>/remove/", views.remove, name="remove_rule"),
]
