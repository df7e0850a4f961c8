"""People's pages that ask for calls."""

from django.urls import path

from gateway.views import case_lists, cases, retry, schedules, try_agent, try_tool
from gateway.views.agent_sign_in import consent, devices, discovery, tokens

app_name = "gateway"

urlpatterns = [
    path(".well-known/oauth-authorization-server", discovery.authorization_server, name="oauth"),
    path(".well-known/openid-configuration", discovery.openid_configuration, name="openid"),
    path("oauth/keys", discovery.keys, name="sign_in_keys"),
    path("oauth/authorize", consent.authorize, name="authorize"),
    path("oauth/token", tokens.token, name="token"),
    path("oauth/device", devices.device, name="device"),
    path("oauth/device_authorization", devices.device_authorization, name="device_authorization"),
    path("oauth/revoke", tokens.revoke, name="revoke"),
    path("oauth/introspect", tokens.introspect, name="introspect"),
    path("oauth/register", tokens.register_client, name="register_client"),
    path("calls/<uuid:call_id>/again/", retry.retry, name="again"),
    path("tools/<tool:name>/try/", try_tool.try_tool, name="try"),
    path("tools/<tool:name>/try/agent/", try_agent.make_agent, name="try_agent"),
    path("cases/", case_lists.cases, name="cases"),
    path("servers/<slug:slug>/cases/", case_lists.server_cases, name="server_cases"),
    path("servers/<slug:slug>/cases/run/", case_lists.run_of_server, name="run_server_cases"),
    path("servers/<slug:slug>/cases/schedule/", schedules.schedule_server, name="schedule_server"),
    path("tools/<tool:name>/cases/run/", case_lists.run_of_tool, name="run_tool_cases"),
    path(
        "tools/<tool:name>/cases/<int:pk>/schedule/", schedules.schedule_case, name="schedule_case"
    ),
    path("tools/<tool:name>/cases/<int:pk>/", cases.case, name="case"),
    path("tools/<tool:name>/cases/<int:pk>/run/", cases.run, name="run_case"),
    path("tools/<tool:name>/cases/<int:pk>/delete/", cases.delete, name="delete_case"),
]
