"""People's pages that ask for calls."""

from django.urls import path

from gateway import views, views_try

app_name = "gateway"

urlpatterns = [
    path("calls/<uuid:call_id>/again/", views.again, name="again"),
    path("tools/<tool:name>/try/", views_try.try_tool, name="try"),
]
