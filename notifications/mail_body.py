"""The parts of a mail: subject, lead, link and facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from django.utils.formats import date_format
from django.utils.timezone import localtime


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
    # Of a mail on several calls: each with its own link.
    calls: list[tuple[str, str]] = field(default_factory=list)


def local_moment(at: datetime) -> str:
    """In the reader's time, which is named: a mail may be read elsewhere."""
    local = localtime(at)
    return f"{date_format(local, 'DATETIME_FORMAT')} {local.tzname()}"
