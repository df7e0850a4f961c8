"""Requests from Slack: presses of buttons, texts, and the command that links an account.

Nobody is signed in here: Slack's signature says who it is, and a linked account who that is here.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import orjson
from django.conf import settings
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    JsonResponse,
    QueryDict,
)
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from accounts import attempts
from core.connections import each_within
from core.english import gettext as english
from core.messages.localizing import localized
from notifications import (
    chat_accounts,
    slack_actions,
    slack_api,
    slack_secrets,
    slack_signatures,
    slack_views,
)
from notifications.chat_accounts import ChatLinkRefused, SlackUser
from notifications.chat_formats import Body, slack_escaped, slack_link
from notifications.models import SlackApp
from notifications.outcomes import Failed, Impossible
from notifications.slack_actions import PressRefused, SlackPress
from notifications.slack_signatures import SlackSignatureInvalid

log = logging.getLogger(__name__)

# Slack waits three seconds for an answer.
STATEMENT_S = 2.0
# By itself, and as JSON writes it: no person types one, and no column takes it.
NULS = ("\0", r"\u0000")


@csrf_exempt
@never_cache
def receive(request: HttpRequest) -> HttpResponse:
    with each_within(STATEMENT_S):
        if request.method != "POST":
            attempts.note_slack_visit(request)
            return HttpResponseNotAllowed(["POST"])
        try:
            apps = slack_signatures.check(request.headers, slack_signatures.body_of(request))
        except SlackSignatureInvalid as why:
            return _refuse(request, why)
        return _answer(apps, request)


def _refuse(request: HttpRequest, why: SlackSignatureInvalid) -> HttpResponse:
    try:
        attempts.wrong(attempts.begin_slack(request), "", str(why))
    except attempts.TooManyAttempts as error:
        return JsonResponse({"error": str(error)}, status=429)
    return JsonResponse({"error": str(why)}, status=401)


def _answer(apps: Sequence[SlackApp], request: HttpRequest) -> HttpResponse:
    if request.content_type == "application/json":
        return _of_event(_json(request.body))
    form = QueryDict(request.body, encoding="utf-8")
    if _has_nul(form):
        attempts.note_slack_visit(request, english("A text of the request has a NUL character."))
        return HttpResponse(status=400)
    with translation.override(apps[0].webhook.language):
        if "payload" in form:
            return _of_payload(apps, _json(form["payload"].encode()))
        if "command" in form:
            return JsonResponse(_of_command(apps, form))
    return HttpResponse()


def _of_event(event: Any) -> HttpResponse:
    """Source: docs.slack.dev, url_verification."""
    match event:
        case {"type": "url_verification", "challenge": str(challenge)}:
            return JsonResponse({"challenge": challenge})
    return HttpResponse()


def _of_payload(apps: Sequence[SlackApp], payload: Any) -> HttpResponse:
    """Source: docs.slack.dev, block_actions and view_submission payloads."""
    match payload:
        case {
            "type": "block_actions",
            "actions": [{"action_id": "deny" | "comment" as act, "value": str(value)}],
            "trigger_id": str(trigger),
        }:
            press = _press(payload, act, value, _message_of(payload))
            _open_in_background(_app_of(apps, press), trigger, _window(apps, press))
        case {
            "type": "view_submission",
            "view": {"callback_id": "deny" | "comment" as act, "private_metadata": str(value)},
        }:
            window = _submit(apps, _press(payload, act, value), _text_of(payload))
            return JsonResponse({"response_action": "update", "view": window})
        case {"type": "block_actions", "actions": [{"action_id": "open"}]}:
            # A link, which the person's browser follows.
            pass
        case {"type": "block_actions", "actions": [{"action_id": str(act), **action}, *_more]}:
            value = str(action.get("value", ""))
            slack_actions.reject_act(apps, _press(payload, act, value, _message_of(payload)))
        case {"type": "view_submission", "view": {"callback_id": str(act), **view}}:
            value = str(view.get("private_metadata", ""))
            slack_actions.reject_act(apps, _press(payload, act, value))
    return HttpResponse()


def _press(payload: Body, act: str, value: str, message: str = "") -> SlackPress:
    match payload:
        case {"team": {"id": str(team)}, "user": {"id": str(user), **of_user}}:
            name = str(of_user.get("username") or of_user.get("name") or user)
            of_team = str(of_user.get("team_id") or team)
            return SlackPress(SlackUser(of_team, user, name), team, act, value, message)
    return SlackPress(SlackUser("", "", ""), "", act, value, message)


def _app_of(apps: Sequence[SlackApp], press: SlackPress) -> SlackApp:
    """The app in the workspace of the press: one that is installed in several signs for all of
    them by one secret, and has a token for each."""
    return next((one for one in apps if one.team_id == press.team_id), apps[0])


def _message_of(payload: Body) -> str:
    match payload:
        case {"container": {"channel_id": str(channel), "message_ts": str(moment)}}:
            return f"{channel} {moment}"
    return "unknown"


def _text_of(payload: Body) -> str:
    match payload:
        case {"view": {"state": {"values": {"text": {"text": {"value": str(text)}}}}}}:
            return text.strip()
    return ""


def _window(apps: Sequence[SlackApp], press: SlackPress) -> Body:
    try:
        checked = slack_actions.check(apps, press)
    except PressRefused as refused:
        return slack_views.saying(press.act, str(refused), refused.approval)
    return slack_views.writing(press.act, checked.approval, press.value)


def _submit(apps: Sequence[SlackApp], press: SlackPress, text: str) -> Body:
    try:
        checked = slack_actions.carry_out(apps, press, text)
    except PressRefused as refused:
        return slack_views.saying(press.act, str(refused), refused.approval)
    return slack_views.confirming(press.act, checked.approval)


def _of_command(apps: Sequence[SlackApp], form: QueryDict) -> Body:
    """Source: docs.slack.dev, slash commands. Only its user sees the answer."""
    team_id, user_id = form.get("team_id", ""), form.get("user_id", "")
    user = SlackUser(team_id, user_id, form.get("user_name", user_id))
    names = {one.team_id: one.team_name for one in apps}
    code = form.get("text", "").strip().removeprefix("link").strip()
    if not code:
        return _ephemeral(_("Type the code of your profile: /countersign link CODE"))
    try:
        signed_by = slack_secrets.signing_digest(apps[0])
        nonce = chat_accounts.name_user(user, names, code, signed_by)
    except ChatLinkRefused as error:
        chat_accounts.note_refusal(user, str(error))
        return _ephemeral(localized(str(error)))
    there = settings.PUBLIC_URL + reverse("notifications:confirm_chat", args=[nonce])
    return _ephemeral(_("One step is left:"), slack_link(there, _("confirm it on your page")))


def _ephemeral(sentence: str, *more: str) -> Body:
    return {"response_type": "ephemeral", "text": " ".join([slack_escaped(sentence), *more])}


def _open_in_background(app: SlackApp, trigger: str, window: Body) -> None:
    """Slack is not kept waiting by a request to itself. Lost, the person presses again."""
    try:
        token = slack_secrets.token(app)
    except Impossible as error:
        log.warning("Slack app %s: %s", app.pk, error)
        return
    given = (token, {"trigger_id": trigger, "view": window})
    threading.Thread(target=_open, args=given, name="slack window", daemon=True).start()


def _open(token: str, body: Body) -> None:
    try:
        slack_api.call(token, "views.open", body)
    except Failed as error:
        log.warning("A window in Slack was not opened: %s", error)


def _has_nul(form: QueryDict) -> bool:
    given = [value for _name, values in form.lists() for value in values]
    return any(nul in value for value in given for nul in NULS)


def _json(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
