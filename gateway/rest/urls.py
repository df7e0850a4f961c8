"""Mounted at /api/."""

from django.urls import path

from gateway.rest.api import Calls, Cancel, Explain, OneCall, Tools, ToolsetTools

app_name = "api"
urlpatterns = [
    path("calls", Calls.as_view(), name="calls"),
    path("calls/<uuid:call_id>", OneCall.as_view(), name="call"),
    path("calls/<uuid:call_id>/cancel", Cancel.as_view(), name="cancel"),
    path("explain", Explain.as_view(), name="explain"),
    path("tools", Tools.as_view(), name="tools"),
    path("toolsets/<slug:slug>/tools", ToolsetTools.as_view(), name="toolset_tools"),
]
