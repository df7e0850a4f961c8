"""The parts of a mail: subject, lead, link and facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import pgettext

from core.text import revealed


@dataclass
class MailText:
    subject: str
    lead: str
    link: str
    action: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    # Of the call, where its rules say so. With secrets masked, if any are.
    arguments: list[tuple[str, str]] = field(default_factory=list)
    is_masked: bool = False
    arguments_left_out: int = 0
    # Of a mail on several calls: each with its own link.
    calls: list[tuple[str, str]] = field(default_factory=list)
    # Of ours, before all else: that a stop is in force, and what happened.
    notice: str = ""
    headline: str = ""

    def __post_init__(self) -> None:
        # A name with a line break is no header of a mail, and forges no further fact.
        self.subject = on_one_line(self.subject)
        self.facts = [(label, on_one_line(value)) for label, value in self.facts]


def on_one_line(text: str) -> str:
    """With hidden characters written out."""
    return " ".join(revealed(text).split())


def labelled(label: str) -> str:
    """With the colon of the language that is active."""
    return label + pgettext("punctuation", ": ")


def local_moment(at: datetime) -> str:
    """In the reader's time, which is named: a mail may be read elsewhere."""
    local = localtime(at)
    return f"{date_format(local, 'DATETIME_FORMAT')} {local.tzname()}"
