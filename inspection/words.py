"""Sentences that describe a tool's result rules, for whoever asks before a call."""

from __future__ import annotations

from collections.abc import Iterator

from core.english import gettext as _
from inspection.patterns import parsed
from inspection.results import HiddenText, Marking, ResultRules, SchemaCheck


def result_sentences(rules: ResultRules | None) -> list[str]:
    """In English, one for each setting that is on; none where results pass byte for byte."""
    return list(_sentences(rules)) if rules else []


def _sentences(rules: ResultRules) -> Iterator[str]:
    if rules.schema == SchemaCheck.BLOCK:
        yield _("A result that does not fit the output schema is blocked.")
    if rules.schema == SchemaCheck.NOTE:
        yield _("A result that does not fit the output schema is noted in the record.")
    if rules.hidden == HiddenText.REMOVE:
        yield _("Hidden characters and terminal commands are removed.")
    if rules.hidden == HiddenText.SHOW:
        yield _("Hidden characters and terminal commands are written out.")
    if rules.secrets:
        yield _("Secrets are masked.")
    if rules.personal:
        yield _("Personal data is masked.")
    if rules.patterns:
        names = ", ".join(one.name for one in parsed(rules.patterns))
        yield _("Matches of its operator's patterns are masked: %(names)s.") % {"names": names}
    if rules.tracebacks:
        yield _("Tracebacks are left out.")
    if rules.links:
        yield _links(rules.hosts)
    if rules.marking == Marking.FOUND:
        yield _("Texts that read like instructions are marked as data.")
    if rules.marking == Marking.ALL:
        yield _("All texts are marked as data.")
    if rules.max_bytes is not None:
        yield _("Results of more than %(n)s bytes are cut.") % {"n": f"{rules.max_bytes:,}"}


def _links(hosts: str) -> str:
    if not hosts.split():
        return _("Links and images are deactivated.")
    said = _("Links and images are deactivated, except those of %(hosts)s.")
    return said % {"hosts": ", ".join(hosts.split())}
