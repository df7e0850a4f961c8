"""People's pages that ask for calls."""

from django.urls import path

from gateway.views import case_lists, cases, retry, schedules, try_agent, try_tool

app_name = "gateway"

urlpatterns = [
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
