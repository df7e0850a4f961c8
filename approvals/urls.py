from django.urls import path

from approvals import views, views_editing, views_freezes, views_grants, views_talk

app_name = "approvals"

urlpatterns = [
    path("queue/", views.queue, name="queue"),
    path("queue/more/", views.more, name="more"),
    path("queue/news/", views.news, name="news"),
    path("queue/count/", views.count, name="count"),
    path("queue/<uuid:call_id>/", views.detail, name="detail"),
    path("queue/<uuid:call_id>/approve/", views.approve, name="approve"),
    path("queue/<uuid:call_id>/step-up/", views.step_up, name="step_up"),
    path("queue/<uuid:call_id>/refuse/", views.refuse, name="refuse"),
    path("queue/<uuid:call_id>/edit/", views_editing.edit, name="edit"),
    path("queue/<uuid:call_id>/grant/", views_grants.new_grant, name="new_grant"),
    path("grants/", views_grants.grants, name="grants"),
    path("grants/revoke/", views_grants.revoke_all, name="revoke_all"),
    path("grants/<int:pk>/revoke/", views_grants.revoke, name="revoke"),
    path("queue/<uuid:call_id>/take-back/", views_talk.take_back, name="take_back"),
    path("queue/<uuid:call_id>/say/", views_talk.say, name="say"),
    path("queue/<uuid:call_id>/talk/", views_talk.talk, name="talk"),
    path("freezes/", views_freezes.listed, name="freezes"),
    path("freezes/frozen/", views_freezes.banner, name="frozen"),
    path("freezes/begin/", views_freezes.begin, name="freeze"),
    path("freezes/<int:pk>/end/", views_freezes.end, name="end_freeze"),
    path("calls/<uuid:call_id>/cancel/", views.cancel, name="cancel"),
]
