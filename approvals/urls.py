from django.urls import path

from approvals import views

app_name = "approvals"

urlpatterns = [
    path("queue/", views.queue, name="queue"),
    path("queue/more/", views.more, name="more"),
    path("queue/news/", views.news, name="news"),
    path("queue/count/", views.count, name="count"),
    path("queue/<uuid:call_id>/", views.detail, name="detail"),
    path("queue/<uuid:call_id>/approve/", views.approve, name="approve"),
    path("queue/<uuid:call_id>/refuse/", views.refuse, name="refuse"),
    path("calls/<uuid:call_id>/cancel/", views.cancel, name="cancel"),
]
