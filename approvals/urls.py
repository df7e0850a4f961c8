from django.urls import path

from approvals.views import (
    comments,
    confirmations,
    decisions,
    deny_all,
    editing,
    emergency_stops,
    queue,
    standing_approvals,
)

app_name = "approvals"

urlpatterns = [
    path("queue/", queue.queue, name="queue"),
    path("queue/more/", queue.more, name="more"),
    path("queue/news/", queue.news, name="news"),
    path("queue/count/", queue.count, name="count"),
    path("queue/deny-all/", deny_all.deny_all, name="deny_all"),
    path("queue/<uuid:call_id>/", queue.detail, name="detail"),
    path("queue/<uuid:call_id>/card/", queue.one_card, name="card"),
    path("queue/<uuid:call_id>/became/", queue.became, name="became"),
    path("queue/<uuid:call_id>/approve/", queue.approve, name="approve"),
    path("queue/<uuid:call_id>/step-up/", queue.step_up, name="step_up"),
    path("queue/<uuid:call_id>/refuse/", queue.refuse, name="refuse"),
    path("queue/<uuid:call_id>/edit/", editing.edit, name="edit"),
    path("queue/<uuid:call_id>/grant/", standing_approvals.new_grant, name="new_grant"),
    path("grants/", standing_approvals.grants, name="grants"),
    path("grants/revoke/", standing_approvals.revoke_all, name="revoke_all"),
    path("grants/<int:pk>/revoke/", standing_approvals.revoke, name="revoke"),
    path("queue/<uuid:call_id>/take-back/", comments.take_back, name="take_back"),
    path("queue/<uuid:call_id>/say/", comments.say, name="say"),
    path("queue/<uuid:call_id>/talk/", comments.show, name="talk"),
    path("people/<int:pk>/decisions/", decisions.decisions, name="decisions"),
    path("emergency-stops/", emergency_stops.stops, name="freezes"),
    path("emergency-stops/banner/", emergency_stops.banner, name="frozen"),
    path("emergency-stops/new/", confirmations.emergency_stop, name="new_freeze"),
    path("emergency-stops/begin/", emergency_stops.begin, name="freeze"),
    path("emergency-stops/<int:pk>/end/", emergency_stops.end, name="end_freeze"),
    path("agents/<slug:name>/disable/", confirmations.disable_agent, name="disable_agent"),
    path(
        "agents/<slug:name>/tokens/<str:public_id>/revocation/",
        confirmations.revoke_token,
        name="revoke_token",
    ),
    path("servers/<slug:slug>/disable/", confirmations.disable_server, name="disable_server"),
    path("people/<int:pk>/disable/", confirmations.disable_person, name="disable_person"),
    path("policies/<int:pk>/removal/", confirmations.rule_removal, name="rule_removal"),
    path("calls/<uuid:call_id>/cancel/", queue.cancel, name="cancel"),
]
