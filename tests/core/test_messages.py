"""The Chinese translation: whole, with the placeholders of the English, and compiled."""

import gettext
import io
from functools import cache
from pathlib import Path

from django.conf import settings

from core.messages import catalogue as files
from core.messages import files as ours
from core.messages.catalogue import Message, MessageKey
from core.messages.extraction import extract

found = cache(ours.updated)


def test_chinese_is_offered_only_when_every_message_is_translated() -> None:
    offered = "zh-hans" in dict(settings.LANGUAGES)
    missing = [message.key.msgid for message in ours.missing(found())]

    # New sentences: `python3 manage.py messages`, then translate them in locale/zh_Hans.
    assert not (offered and missing), missing[:20]


def test_translations_use_the_placeholders_of_their_messages() -> None:
    unequal = [message.key.msgid for message in ours.unequal_placeholders(found())]

    assert unequal == []


def test_the_compiled_file_is_that_of_the_written_one() -> None:
    assert ours.MO.read_bytes() == files.compiled(files.read(ours.PO))


def test_what_is_written_is_read_again_and_looked_up(tmp_path: Path) -> None:
    key, counted = MessageKey('Say "%s"\n\\', "a context"), MessageKey("{n} day", "", "{n} days")
    catalogue = {
        key: Message(key, "说“%s”\n\\", ["a.py"]),
        counted: Message(counted, "{n} 天"),
        MessageKey("Later"): Message(MessageKey("Later"), "以后", flags={"fuzzy"}),
    }

    files.write(tmp_path / "x.po", catalogue)

    assert files.read(tmp_path / "x.po") == catalogue
    compiled = gettext.GNUTranslations(io.BytesIO(files.compiled(catalogue)))
    assert compiled.pgettext("a context", key.msgid) == "说“%s”\n\\"
    assert compiled.ngettext("{n} day", "{n} days", 7) == "{n} 天"
    assert compiled.gettext("Later") == "Later"


def test_messages_are_found_in_templates_and_code(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "a.html").write_text(
        """{% translate "Plain, 100%" %} {{ x|default:_("Given") }}
        {% include "b.html" with text=_("It's passed") only %}
        {% blocktranslate trimmed with n=1 %} Two
        lines {{ n }}{% endblocktranslate %}
        {% blocktranslate count n=1 %}{{ n }} one{% plural %}{{ n }} more{% endblocktranslate %}
        {% translate "Open" context "verb" %}"""
    )
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "a.py").write_text(
        'A = _("Joined " "text"), pgettext("noun", "Open"), ngettext("%d", "%ds", 2), _(A)'
    )

    assert set(extract(tmp_path)) == {
        MessageKey("Plain, 100%%"),
        MessageKey("Given"),
        MessageKey("It's passed"),
        MessageKey("Two lines %(n)s"),
        MessageKey("%(n)s one", "", "%(n)s more"),
        MessageKey("Open", "verb"),
        MessageKey("Joined text"),
        MessageKey("Open", "noun"),
        MessageKey("%d", "", "%ds"),
    }
