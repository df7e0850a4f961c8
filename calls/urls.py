from django.urls import path

from calls import views, views_usage

app_name = "calls"

urlpatterns = [
    path("calls/", views.call_list, name="list"),
    path("calls/unknown/", views.unknown, name="unknown"),
    path("calls/news/", views.news, name="news"),
    path("calls/<uuid:call_id>/", views.detail, name="detail"),
    path("calls/<uuid:call_id>/payload/", views.payload, name="payload"),
    path("calls/<uuid:call_id>/content/<int:number>/", views.piece, name="piece"),
    path("calls/<uuid:call_id>/resolve/", views.resolve, name="resolve"),
    path("calls/<uuid:call_id>/result.json", views.whole_result, name="result"),
    path("calls/<uuid:call_id>/arguments.json", views.sent_arguments, name="arguments"),
    path("tools/<tool:name>/usage/", views_usage.usage, name="usage"),
    path("tools/<tool:name>/calls/", views_usage.of_tool, name="of_tool"),
    path("servers/<slug:slug>/trouble/", views_usage.trouble, name="trouble"),
]
