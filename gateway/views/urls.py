"""People's pages that ask for calls."""

from django.urls import path

from gateway.views import retry, try_tool

app_name = "gateway"

urlpatterns = [
    path("calls/<uuid:call_id>/again/", retry.retry, name="again"),
    path("tools/<tool:name>/try/", try_tool.try_tool, name="try"),
]
