"""Methods of Slack's Web API. Source: docs.slack.dev/apis/web-api: JSON by POST with the bot's
token, answered with status 200 and `ok`."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import orjson
from django.conf import settings

from core.english import gettext as _
from notifications.guarded_requests import check_success, json_of, post
from notifications.outcomes import Failed

Body = dict[str, Any]


class SlackError(Failed):
    """Slack answered, and did not do it; `code` is its own word for why."""

    def __init__(self, code: str) -> None:
        super().__init__(_("Slack answered: %(code)s.") % {"code": code})
        self.code = code


class SlackIdentity(NamedTuple):
    """The workspace that a bot's token is for."""

    team_id: str
    team_name: str


def identify(token: str) -> SlackIdentity:
    """Raises Failed."""
    match call(token, "auth.test", {}):
        case {"team_id": str(team_id), "bot_id": str()} as answer:
            return SlackIdentity(team_id[:32], str(answer.get("team", ""))[:120])
    raise SlackError("not_a_bot")


def call(token: str, method: str, body: Body) -> Body:
    """The answer. Raises Failed, and SlackError where Slack refuses."""
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "Authorization": f"Bearer {token}",
    }
    url = f"{settings.SLACK_API_URL}/{method}"
    reply = post(url, headers, orjson.dumps(body), is_answer_needed=True)
    check_success(reply)
    answer: Any = json_of(reply)
    match answer:
        case {"ok": True}:
            return cast(Body, answer)
        case {"ok": False, "error": str(code)}:
            raise SlackError(code[:100])
    raise Failed(_("The answer is not Slack's."))
