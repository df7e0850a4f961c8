"""Messages as chats show them, drawn from the JSON that they were sent: for pictures, not for use.

Block Kit and Adaptive Cards as their vendors document them, as far as our messages use them; in
either theme. What a chat would read as mark-up is drawn as such, so that a picture shows it.
"""

import re
from html import escape
from typing import Any

Json = dict[str, Any]

STYLE = """
:root { color-scheme: light dark; font: 15px/1.46 Lato, "Segoe UI", sans-serif; }
body { margin: 0; padding: 16px; background: light-dark(#fff, #1a1d21);
  color: light-dark(#1d1c1d, #e8e8e8); }
main { max-width: 560px; overflow-wrap: anywhere; }
header { font-weight: 700; margin-block-end: 4px; }
p { margin: 0 0 8px; white-space: pre-wrap; }
code { padding: 1px 3px; border: 1px solid light-dark(#ddd, #3b3f45); border-radius: 3px;
  background: light-dark(#f6f6f6, #24272c); color: light-dark(#a8102f, #f0a38f); font-size: 12px; }
.fields { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr));
  gap: 4px 16px; margin-block-end: 8px; }
.actions { display: flex; flex-wrap: wrap; gap: 8px; }
.button { padding: 4px 12px; border: 1px solid light-dark(#767676, #8d8f92); border-radius: 4px;
  font-weight: 700; color: inherit; text-decoration: none; }
.danger { background: light-dark(#c9184a, #b3123f); border-color: transparent; color: #fff; }
.card { padding: 12px 16px; border: 1px solid light-dark(#d1d1d1, #424242); border-radius: 8px;
  background: light-dark(#fff, #292929); }
a { color: light-dark(#1264a3, #5cb3ff); }
"""
_MARKUP = re.compile(r"<(?P<url>[^|<>]+)\|(?P<label>[^<>]*)>|`(?P<code>[^`]*)`")


def slack_page(body: Json) -> str:
    """A message of the Web API or an incoming webhook."""
    return _page("Countersign", "".join(map(_block, body["blocks"])))


def teams_page(body: Json) -> str:
    (attachment,) = body["attachments"]
    card = attachment["content"]
    lines = "".join(f"<p>{''.join(map(_run, one['inlines']))}</p>" for one in card["body"])
    actions = "".join(_link(one["url"], one["title"]) for one in card["actions"])
    return _page(
        "Workflows", f'<div class="card">{lines}<div class="actions">{actions}</div></div>'
    )


def _page(sender: str, inner: str) -> str:
    head = f"<meta charset='utf-8'><title>{sender}</title><style>{STYLE}</style>"
    body = f"<main><header>{sender}</header>{inner}</main>"
    return f"<!doctype html><html lang='en'><head>{head}</head><body>{body}</body></html>"


def _block(block: Json) -> str:
    match block:
        case {"type": "section", "fields": fields}:
            marked = "".join(f"<div>{_marked(one)}</div>" for one in fields)
            return f'<div class="fields">{marked}</div>'
        case {"type": "section", "text": text}:
            return f"<p>{_marked(text)}</p>"
        case {"type": "actions", "elements": buttons}:
            return f'<div class="actions">{"".join(map(_button, buttons))}</div>'
    raise AssertionError(block)


def _marked(text: Json) -> str:
    """Slack's mark-up, in which `&`, `<` and `>` are escaped as in HTML."""
    assert text["type"] == "mrkdwn"
    return _MARKUP.sub(_element, text["text"])


def _element(found: re.Match[str]) -> str:
    if found["url"]:
        return f'<a href="{found["url"]}">{found["label"]}</a>'
    return f"<code>{found['code']}</code>"


def _button(button: Json) -> str:
    return _link(button.get("url", "#"), button["text"]["text"], button.get("style", ""))


def _link(url: str, label: str, style: str = "") -> str:
    return f'<a class="button {style}" href="{escape(url)}">{escape(label)}</a>'


def _run(run: Json) -> str:
    text = escape(run["text"])
    return f"<strong>{text}</strong>" if run.get("weight") == "Bolder" else text
