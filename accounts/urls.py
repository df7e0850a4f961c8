from django.contrib.auth.views import LogoutView
from django.urls import path

from accounts import views, views_agents, views_people, views_proving, views_settings

app_name = "accounts"

urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="sign_in"),
    path("sign-in/<str:text>/", views.sign_in_link, name="sign_in_link"),
    # Before admin/, which would answer it.
    path("admin/login/", views.boiler_room_door),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("theme/", views.theme, name="theme"),
    path("settings/", views_settings.settings, name="settings"),
    path("profile/", views_people.profile, name="profile"),
    path("profile/password/", views_people.password, name="password"),
    path("profile/passkeys/begin/", views_proving.begin_passkey, name="begin_passkey"),
    path("profile/passkeys/add/", views_proving.add_passkey, name="add_passkey"),
    path("profile/passkeys/<int:pk>/", views_proving.passkey, name="passkey"),
    path("profile/codes/", views_proving.code_app, name="code_app"),
    path("profile/codes/picture.svg", views_proving.picture, name="code_picture"),
    path("profile/codes/confirm/", views_proving.confirm_code_app, name="confirm_code_app"),
    path("profile/codes/remove/", views_proving.remove_code_app, name="remove_code_app"),
    path("people/", views_people.people, name="people"),
    path("new/person/", views_people.invite, name="invite"),
    path("people/<int:pk>/", views_people.person, name="person"),
    path("people/<int:pk>/active/", views_people.set_active, name="set_person_active"),
    path("people/<int:pk>/link/", views_people.new_link, name="new_link"),
    path("agents/", views_agents.agents, name="agents"),
    path("new/agent/", views_agents.add_agent, name="add_agent"),
    path("agents/<slug:name>/", views_agents.agent, name="agent"),
    path("agents/<slug:name>/enabled/", views_agents.set_enabled, name="set_agent_enabled"),
    path("agents/<slug:name>/tokens/", views_agents.issue_token, name="issue_token"),
    path(
        "agents/<slug:name>/tokens/<str:public_id>/rotate/",
        views_agents.rotate_token,
        name="rotate_token",
    ),
    path(
        "agents/<slug:name>/tokens/<str:public_id>/revoke/",
        views_agents.revoke_token,
        name="revoke_token",
    ),
]
