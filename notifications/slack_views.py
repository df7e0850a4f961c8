"""Windows in Slack (modals), in which a person writes a reason or a comment, and reads what became
of it. Source: docs.slack.dev, Modals: 24 characters for a title."""

from __future__ import annotations

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _

from approvals.comments import LONGEST
from approvals.models import Approval
from core.messages.localizing import localized
from notifications.chat_formats import Body, slack_escaped, slack_link, slack_section

TEXT = "text"
# Slack's own limit for an input.
TEXT_MAX = min(LONGEST, 3000)


def writing(act: str, approval: Approval, value: str) -> Body:
    """Asks for the text. `value` comes back with it."""
    label = _("Reason, which the agent reads too") if act == "deny" else _("Comment")
    call = approval.call
    about = f"`{_code(call.tool_name)}` · `{_code(call.agent.name)}` · `{call.fingerprint}`"
    field: Body = {"type": "plain_text_input", "action_id": TEXT, "multiline": True}
    field["max_length"] = TEXT_MAX
    entry = {"type": "input", "block_id": TEXT, "label": _plain(label), "element": field}
    return {
        **_window(_title(act)),
        "callback_id": act,
        "private_metadata": value,
        "submit": _plain(_title(act)),
        "close": _plain(_("Cancel")),
        "blocks": [slack_section(about), {**entry, "optional": act == "deny"}],
    }


def saying(act: str, sentence: str, approval: Approval | None) -> Body:
    """Says what became of it, with the link to the page."""
    path = reverse("approvals:detail", args=[approval.pk]) if approval else _profile()
    label = _("Open the call") if approval else _("Your notifications")
    text = slack_escaped(localized(sentence)[:2000].replace("`", "ˋ"))
    shown = [slack_section(text), slack_section(slack_link(settings.PUBLIC_URL + path, label))]
    return {**_window(_title(act)), "close": _plain(_("Close")), "blocks": shown}


def confirming(act: str, approval: Approval) -> Body:
    said = _("Your denial is recorded.") if act == "deny" else _("Your comment is recorded.")
    return saying(act, said, approval)


def _title(act: str) -> str:
    return _("Deny") if act == "deny" else _("Comment")


def _profile() -> str:
    return reverse("notifications:profile")


def _window(title: str) -> Body:
    return {"type": "modal", "title": _plain(title[:24])}


def _plain(text: str) -> Body:
    return {"type": "plain_text", "text": text, "emoji": False}


def _code(text: str) -> str:
    return slack_escaped(" ".join(text.split())[:120].replace("`", "ˋ"))
