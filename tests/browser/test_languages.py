"""Every page in both languages: no sentence of ours is in the other one."""

import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote_plus

import pytest
from django.apps import apps
from django.core.serializers.json import DjangoJSONEncoder
from django.test import Client
from django.utils.translation import override

from core.messages import files
from core.messages.localizing import localized
from tests.browser import every_page
from tests.browser.scene import Office
from tests.browser.scene import office as furnished

CHINESE = re.compile("[\u3400-\u9fff]")
WORD = re.compile("[A-Za-z]{3,}")
# Read aloud or shown on hover, and what scripts show.
SHOWN = ("title", "aria-label", "placeholder", "alt", "label")
APPS = {
    *("accounts", "approvals", "audit", "calls", "gateway", "notifications", "policies"),
    "registry",
}
NOT_READ = {"script", "style", "pre", "code", "kbd", "option", "textarea"}
# Words for scripts and styles, with a space between.
LISTS = {"data-kinds"}
VOID = {"meta", "link", "input", "br", "img", "hr", "use", "path"}
# Names of products, forms and units, and what every language writes so.
ANY_LANGUAGE = re.compile(
    r"(?x)\b(Countersign|English|MCP|JSON(\ Schema)?|JSONL|CSV|SQL|REST|HTTP|SSE|URL|CEL|SHA-256|"
    r"KiB|UTC|Ctrl|Enter|Esc|Tab|Shift|VS\ Code|Cursor|Claude(\ Code|\ Desktop)?|"
    r"Gemini(\ CLI)?|Codex(\ CLI)?|"
    r"MCP\ Inspector|Inspector|Webhooks?|EMAIL_URL|Authorization|Bearer|args|p50|p95|curl|stdio|"
    r"name\.tool|CLI|Basic\ Information|App\ Credentials|Signing\ Secret|"
    r"Slack|Microsoft\ Teams|Mattermost|Discord|Telegram|OpenAI|Anthropic)\b"
)


# Of a title, or of what somebody said.
PARTS = re.compile("[ \u00a0]· |: |[“”：]")


class Reader(HTMLParser):
    """What a page says, text by text."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            # A condition is in its own language.
            is_condition = tag == "textarea" and ("name", "when") in attrs
            self.inside += ["textarea", "code"] if is_condition else [tag]
        for name, value in attrs:
            is_said = name.startswith("data-") and name not in LISTS and " " in (value or "")
            if value and (name in SHOWN or is_said):
                self.texts.append(value)

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if data.strip() and not NOT_READ & set(self.inside):
            self.texts.append(" ".join(data.split()))


def read(client: Client, address: str) -> list[str]:
    reader = Reader()
    reader.feed(client.get(address).text)
    return reader.texts


def rows() -> str:
    """Whatever people, agents and servers wrote, as one text to look in."""
    texts = [
        json.dumps(
            list(model._default_manager.values()),
            cls=DjangoJSONEncoder,
            default=_plain,
            ensure_ascii=False,
        )
        for model in apps.get_models()
        if model._meta.app_label in APPS
    ]
    return _spaced(" ".join(texts))


def _plain(value: object) -> str:
    return bytes(value).decode(errors="replace") if isinstance(value, memoryview | bytes) else ""


def is_english_of_ours(text: str, written: str, messages: set[str]) -> bool:
    if CHINESE.search(text):
        return False
    # A word of ours may be an argument's name, and a file is called so everywhere.
    is_theirs = f'"{text}"' in written or text.startswith("~/")
    if (text in messages or localized(text) != text) and not is_theirs:
        return bool(WORD.search(ANY_LANGUAGE.sub("", text)))
    return any(is_unknown(part, written) for part in PARTS.split(text))


def is_unknown(text: str, written: str) -> bool:
    """Words that neither a row holds nor every language writes so, and no name or address."""
    plain = _spaced(text).strip(' .,:·“”()–…[]"，。；、（）')
    is_name = " " not in plain and re.search(r"[._/:@=-]|^[0-9a-f]{64}$", plain)
    return not is_name and bool(WORD.search(ANY_LANGUAGE.sub("", plain))) and plain not in written


def _spaced(text: str) -> str:
    """Without what JSON escapes or a page makes visible, and as browsers show spaces."""
    text = text.replace("\u200b", "").replace("\\u200b", "")
    return " ".join(re.sub(r"\\+(?=\")", "", re.sub(r"\\+n", " ", text)).split())


@pytest.fixture
def office(transactional_db: None) -> Office:
    return furnished()


@pytest.mark.long
def test_no_page_says_anything_of_ours_in_the_other_language(office: Office) -> None:
    ada = every_page.everybody("ada")
    every_page.furnish(office, ada)
    addresses = [*every_page.every_page(office, ada), *every_page.further(office)]
    messages = {key.msgid for key in files.updated()}
    written = f"{rows()} {_spaced(unquote_plus(' '.join(addresses)))}"
    client = Client()
    client.force_login(ada)
    found: dict[str, list[str]] = {}
    with override("zh-hans"):
        for language in ("en", "zh-hans"):
            client.cookies["django_language"] = language
            for address in addresses:
                for text in read(client, address):
                    wrong = (
                        CHINESE.search(text) and text != "简体中文"
                        if language == "en"
                        else is_english_of_ours(text, written, messages)
                    )
                    if wrong:
                        found.setdefault(text, []).append(f"{language} {address}")

    said = "\n".join(f"{places[0]}: {text}" for text, places in found.items())
    assert not found, f"{len(found)} texts\n{said}"
