"""Messages of a Slack app: one for each pending call, which is updated with what became of it."""

from __future__ import annotations

from contextlib import suppress

from django.utils import translation
from django.utils.translation import gettext

from approvals.models import Approval
from core.english import gettext as _
from notifications import slack_api, slack_secrets
from notifications.chat_formats import Body, slack_message
from notifications.chat_texts import ChatMessage, compose
from notifications.events import ANSWERS, Event
from notifications.models import Delivery, SlackApp, Webhook
from notifications.outcomes import NOT_WANTED, Failed, NotNeeded
from notifications.payloads import entry_of
from notifications.slack_api import SlackError
from policies.thresholds import StepUp, stored

# The message is gone, or may not be changed any more: the answer comes as another one.
_UNCHANGEABLE = {"message_not_found", "cant_update_message", "edit_window_closed"}
_WAIT_S = 5


def send(delivery: Delivery, webhook: Webhook) -> str:
    """The channel and the time of the message, by which Slack knows it. Raises Failed, Impossible
    and NotNeeded."""
    app = webhook.slack_app
    asking = _find_first(delivery)
    first = asking.receipt if asking else ""
    # Of two that ask, buttons that a decision has to lock are on the one that it updates.
    digest = "" if first else _digest(delivery)
    with translation.override(webhook.language):
        message = compose(delivery)
        body = slack_message(message, _buttons(delivery, app, message, digest))
    if delivery.event in ANSWERS and first:
        with suppress(_Unchangeable):
            return _update(app, first, body)
    if asking and first and entry_of(delivery).action == "call.amended":
        # Its buttons are of the call as it was.
        with translation.override(webhook.language), suppress(_Unchangeable):
            buttons = _buttons(asking, app, message, _digest(delivery))
            _update(app, first, slack_message(message, buttons))
    if delivery.event in ANSWERS and webhook.events and delivery.event not in webhook.events:
        raise NotNeeded(NOT_WANTED)
    return _post(app, body, first)


def is_step_up_asked(approval: Approval) -> bool:
    """Whether any vote on it needs a passkey or a code: then nothing of it is done in a chat."""
    return any(one.step_up != StepUp.NONE for one in stored(approval.thresholds))


class _Unchangeable(Exception):
    """The first message cannot be updated."""


def _find_first(delivery: Delivery) -> Delivery | None:
    """The first message that asks. Raises Failed while another process sends it."""
    if not delivery.call_id:
        return None
    earlier = Delivery.objects.filter(webhook=delivery.webhook_id, call_id=delivery.call_id)
    asking = (
        earlier.filter(event=Event.APPROVAL_NEEDED)
        .exclude(pk=delivery.pk)
        .order_by("entry_id")
        .first()
    )
    if asking and asking.is_pending and asking.attempts and delivery.event in ANSWERS:
        why = _("The message that asks is being sent.")
        raise Failed(why, is_of_place=False, retry_after_s=_WAIT_S)
    return asking


def _digest(delivery: Delivery) -> str:
    """The digest that a press is about; "" where nobody may press. Read before the words of the
    message are: what changes between is refused at the press."""
    if delivery.event != Event.APPROVAL_NEEDED:
        return ""
    waiting = Approval.objects.waiting().select_related("call")
    approval = waiting.filter(pk=delivery.call_id).first()
    if approval is None or is_step_up_asked(approval):
        return ""
    return approval.call.call_digest


def _buttons(delivery: Delivery, app: SlackApp, message: ChatMessage, digest: str) -> Body:
    is_asking = delivery.event == Event.APPROVAL_NEEDED and not message.notice
    label = gettext("Open and approve") if is_asking else ""
    buttons: list[Body] = [
        {**_button("open", label or message.action), "url": message.link, "value": str(delivery.pk)}
    ]
    value = f"{delivery.pk} {digest}"
    if digest and app.takes_denials:
        buttons.append({**_button("deny", gettext("Deny")), "value": value, "style": "danger"})
    if digest and app.takes_comments:
        buttons.append({**_button("comment", gettext("Comment")), "value": value})
    return {"type": "actions", "elements": buttons}


def _button(action: str, label: str) -> Body:
    """Source: docs.slack.dev, Block Kit: 75 characters for a label, 2,000 for a value."""
    text = {"type": "plain_text", "text": label[:75], "emoji": False}
    return {"type": "button", "action_id": action, "text": text}


def _post(app: SlackApp, body: Body, thread: str) -> str:
    """A reminder answers to the message that asks, and is seen in the channel as well."""
    body = {"channel": app.channel, **body}
    if thread:
        body |= {"thread_ts": thread.partition(" ")[2], "reply_broadcast": True}
    answer = slack_api.call(slack_secrets.token(app), "chat.postMessage", body)
    channel = str(answer.get("channel", ""))
    if channel and app.is_channel_named:
        # From here on its ID, which outlives a change of the name.
        SlackApp.objects.filter(pk=app.pk, channel=app.channel).update(channel=channel)
    return f"{channel} {answer.get('ts', '')}"


def _update(app: SlackApp, receipt: str, body: Body) -> str:
    channel, _space, moment = receipt.partition(" ")
    changed = {"channel": channel, "ts": moment, "text": body["text"], "blocks": body["blocks"]}
    try:
        slack_api.call(slack_secrets.token(app), "chat.update", changed)
    except SlackError as error:
        if error.code in _UNCHANGEABLE:
            raise _Unchangeable from error
        raise
    return receipt
