from django.urls import path

from accounts.views import agents, people, proofs, second_factor, settings, sign_in

app_name = "accounts"

urlpatterns = [
    path("sign-in/", sign_in.SignIn.as_view(), name="sign_in"),
    path("sign-in/second-step/", second_factor.second_step, name="second_factor"),
    path(
        "sign-in/second-step/passkey/",
        second_factor.passkey_options,
        name="second_factor_options",
    ),
    path("sign-in/<str:text>/", sign_in.sign_in_link, name="sign_in_link"),
    # Before admin/, which would answer it.
    path("admin/login/", sign_in.boiler_room_door),
    path("sign-out/", sign_in.SignOut.as_view(), name="sign_out"),
    path("theme/", sign_in.theme, name="theme"),
    path("language/", sign_in.language, name="language"),
    path("settings/", settings.settings, name="settings"),
    path("profile/", people.profile, name="profile"),
    path("profile/password/", people.password, name="password"),
    path("profile/passkeys/begin/", proofs.begin_passkey, name="begin_passkey"),
    path("profile/passkeys/add/", proofs.add_passkey, name="add_passkey"),
    path("profile/passkeys/<int:pk>/", proofs.passkey, name="passkey"),
    path("profile/codes/", proofs.code_app, name="code_app"),
    path("profile/codes/picture.svg", proofs.picture, name="code_picture"),
    path("profile/codes/confirm/", proofs.confirm_code_app, name="confirm_code_app"),
    path("profile/codes/remove/", proofs.remove_code_app, name="remove_code_app"),
    path("people/", people.people, name="people"),
    path("people/roles/<int:pk>/", people.answer_request, name="answer_request"),
    path("new/person/", people.invite, name="invite"),
    path("people/<int:pk>/", people.person, name="person"),
    path("people/<int:pk>/active/", people.set_active, name="set_person_active"),
    path("people/<int:pk>/name/", people.rename, name="rename"),
    path("people/<int:pk>/confirm/", people.confirm, name="confirm"),
    path("people/<int:pk>/link/", people.new_link, name="new_link"),
    path("agents/", agents.agents, name="agents"),
    path("new/agent/", agents.add_agent, name="add_agent"),
    path("agents/<slug:name>/", agents.agent, name="agent"),
    path("agents/<slug:name>/enabled/", agents.set_enabled, name="set_agent_enabled"),
    path("agents/<slug:name>/hold/", agents.set_hold, name="set_agent_hold"),
    path("agents/<slug:name>/tokens/", agents.issue_token, name="issue_token"),
    path(
        "agents/<slug:name>/tokens/<str:public_id>/rotate/",
        agents.rotate_token,
        name="rotate_token",
    ),
    path(
        "agents/<slug:name>/tokens/<str:public_id>/revoke/",
        agents.revoke_token,
        name="revoke_token",
    ),
]
