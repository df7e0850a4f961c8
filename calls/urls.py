from django.urls import path

from calls.views import calls, delete_server, narrowed, received, rule_of_call, usage

app_name = "calls"

urlpatterns = [
    path("calls/", calls.call_list, name="list"),
    path("calls/unknown/", calls.unknown, name="unknown"),
    path("calls/news/", calls.news, name="news"),
    path("calls/<uuid:call_id>/", calls.detail, name="detail"),
    path("calls/<uuid:call_id>/rule/", rule_of_call.rule_of_call, name="make_rule"),
    path("calls/<uuid:call_id>/payload/", calls.payload, name="payload"),
    path("calls/<uuid:call_id>/content/<int:number>/", calls.piece, name="piece"),
    path("calls/<uuid:call_id>/received/", received.received, name="received"),
    path("calls/<uuid:call_id>/resolve/", calls.resolve, name="resolve"),
    path("calls/<uuid:call_id>/result.json", calls.whole_result, name="result"),
    path("calls/<uuid:call_id>/arguments.json", calls.sent_arguments, name="arguments"),
    path("agents/<slug:name>/usage/", narrowed.of_agent, name="agent_usage"),
    path("servers/<slug:slug>/usage/", narrowed.of_server, name="server_usage"),
    path("servers/<slug:slug>/delete/", delete_server.delete_server, name="delete_server"),
    path("policies/<int:pk>/usage/", narrowed.of_rule, name="rule_usage"),
    path("tools/<tool:name>/usage/", usage.usage, name="usage"),
    path("tools/<tool:name>/calls/", usage.of_tool, name="of_tool"),
    path("servers/<slug:slug>/trouble/", usage.trouble, name="trouble"),
]
