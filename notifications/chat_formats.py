"""Requests as each chat documents them, in which foreign text stays text.

Foreign text is set as code where a channel reads mark-up: no channel looks for mentions, links or
emphasis in code, and the one character that could end it is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yarl import URL

from core.english import gettext as _
from core.outbound import AddressRefused
from notifications.chat_texts import ChatMessage, Line
from notifications.mail_body import labelled
from notifications.models import Webhook

Body = dict[str, Any]
Format = Webhook.Format

# Discord: no previews of links (SUPPRESS_EMBEDS).
_NO_PREVIEW = 1 << 2
_SHOWN_OF_ADDRESS = 4
# Slack: of one section.
_FIELDS_MAX = 10


def request(
    webhook: Webhook, address: str, message: ChatMessage, reply_to: str
) -> tuple[URL, Body]:
    """Where to post, and what. `reply_to` is the receipt of the message on the same call."""
    url = URL(address)
    match webhook.format:
        case Format.SLACK:
            return url, _slack(message)
        case Format.TEAMS:
            return url, _teams(message)
        case Format.MATTERMOST:
            return url, {"text": _markdown(message)}
        case Format.DISCORD:
            # Otherwise it answers before it knows whether the message is kept.
            return url.update_query(wait="true"), _discord(message)
    return url.with_query(None), {**dict(url.query), **_telegram(message, reply_to)}


def receipt(webhook: Webhook, answer: Any) -> str:
    """The id by which a later message can answer to this one; "" where the channel has none."""
    match webhook.format, answer:
        case Format.TELEGRAM, {"result": {"message_id": int(number)}}:
            return str(number)
    return ""


def check_address(chat: str, address: str) -> None:
    """Raises AddressRefused for a Telegram address that does not say which chat."""
    url = URL(address)
    if chat == Format.TELEGRAM and not (
        url.path.startswith("/bot") and url.name == "sendMessage" and url.query.get("chat_id")
    ):
        raise AddressRefused(
            _(
                "The URL must be https://api.telegram.org/bot<token>/sendMessage?chat_id=<chat>, "
                "with the bot's token and the chat's id."
            )
        )


def hint(address: str) -> str:
    """All that people see of an address: its host and its last characters."""
    url = URL(address)
    return f"{url.scheme}://{url.host_port_subcomponent}/…{address[-_SHOWN_OF_ADDRESS:]}"


def _slack(message: ChatMessage) -> Body:
    """Source: docs.slack.dev, Block Kit: 3,000 characters for a text, 2,000 for a field."""
    # A link instead of a button: a press on a button is sent to the app, which takes none.
    return slack_message(message, slack_section(slack_link(message.link, message.action)))


def slack_message(message: ChatMessage, *last: Body) -> Body:
    """`last`: the blocks below those that say what it is about."""
    headline = _as_code(message.headline, slack_escaped)
    blocks: list[Body] = [slack_section(headline)]
    for line in filter(None, (message.notice, message.lead)):
        blocks.append(slack_section(_as_code(line, slack_escaped)))
    fields = [_slack_text(_as_code(one, slack_escaped)) for one in message.facts]
    for at in range(0, len(fields), _FIELDS_MAX):
        blocks.append({"type": "section", "fields": fields[at : at + _FIELDS_MAX]})
    shown = [*blocks, *last]
    return {"text": headline, "blocks": shown, "unfurl_links": False, "unfurl_media": False}


def slack_link(address: str, label: str) -> str:
    return f"<{address}|{slack_escaped(label)}>"


def slack_section(text: str) -> Body:
    return {"type": "section", "text": _slack_text(text)}


def _slack_text(text: str) -> Body:
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def slack_escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _teams(message: ChatMessage) -> Body:
    """Source: learn.microsoft.com, Adaptive Cards: a TextRun has no Markdown, a TextBlock has."""
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [_rich_text(line) for line in message.lines()],
        "actions": [{"type": "Action.OpenUrl", "title": message.action, "url": message.link}],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}


def _rich_text(line: Line) -> Body:
    runs = [
        {"type": "TextRun", "text": part.text, **({"weight": "Bolder"} if part.is_foreign else {})}
        for part in line
    ]
    return {"type": "RichTextBlock", "inlines": runs}


def _discord(message: ChatMessage) -> Body:
    """Source: docs.discord.com, Execute Webhook: 2,000 characters."""
    return {
        "content": _markdown(message),
        "allowed_mentions": {"parse": []},
        "flags": _NO_PREVIEW,
    }


def _markdown(message: ChatMessage) -> str:
    lines = [_as_code(line) for line in message.lines()]
    return "\n".join([*lines, f"[{message.action}]({message.link})"])


def _as_code(line: Line, escaped: Callable[[str], str] = str) -> str:
    return "".join(
        f"`{escaped(part.text.replace('`', 'ˋ'))}`" if part.is_foreign else escaped(part.text)
        for part in line
    )


def _telegram(message: ChatMessage, reply_to: str) -> Body:
    """Source: core.telegram.org/bots/api, sendMessage: 4,096 characters, and entities instead of
    mark-up, which count in units of UTF-16."""
    text, entities = "", []
    for line in message.lines():
        for part in line:
            if part.is_foreign:
                entities.append(
                    {"type": "code", "offset": _units(text), "length": _units(part.text)}
                )
            text += part.text
        text += "\n"
    # Written out: a link to a host that Telegram does not know would be dropped without a word.
    text += labelled(message.action) + message.link
    body: Body = {
        "text": text,
        "entities": entities,
        "link_preview_options": {"is_disabled": True},
    }
    if reply_to:
        answered = {"message_id": int(reply_to), "allow_sending_without_reply": True}
        body["reply_parameters"] = answered
    return body


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
