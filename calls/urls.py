from django.urls import path

from calls import views

app_name = "calls"

urlpatterns = [
    path("calls/", views.call_list, name="list"),
    path("calls/unknown/", views.unknown, name="unknown"),
    path("calls/news/", views.news, name="news"),
    path("calls/<uuid:call_id>/", views.detail, name="detail"),
    path("calls/<uuid:call_id>/content/<int:number>/", views.piece, name="piece"),
    path("calls/<uuid:call_id>/resolve/", views.resolve, name="resolve"),
    path("calls/<uuid:call_id>/result.json", views.whole_result, name="result"),
    path("calls/<uuid:call_id>/arguments.json", views.sent_arguments, name="arguments"),
]
