"""The strictest of several choices for results: each that is on stays on, whoever made it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from inspection.results import PASS_ALL, HiddenText, Marking, ResultRules, SchemaCheck

_SCHEMA = (SchemaCheck.OFF, SchemaCheck.NOTE, SchemaCheck.BLOCK)
_HIDDEN = (HiddenText.KEEP, HiddenText.SHOW, HiddenText.REMOVE)
_MARKING = (Marking.OFF, Marking.FOUND, Marking.ALL)


def combine_rules(choices: Iterable[ResultRules | None]) -> ResultRules | None:
    """None where nothing is chosen: results pass byte for byte."""
    combined = PASS_ALL
    for one in choices:
        if one is not None and one != combined:
            combined = _both(combined, one)
    return None if combined == PASS_ALL else combined


@lru_cache(maxsize=1000)
def _both(one: ResultRules, other: ResultRules) -> ResultRules:
    sizes = [rules.max_bytes for rules in (one, other) if rules.max_bytes is not None]
    return ResultRules(
        schema=max(one.schema, other.schema, key=_SCHEMA.index),
        hidden=max(one.hidden, other.hidden, key=_HIDDEN.index),
        secrets=one.secrets or other.secrets,
        personal=one.personal or other.personal,
        tracebacks=one.tracebacks or other.tracebacks,
        max_bytes=min(sizes, default=None),
        links=one.links or other.links,
        hosts=_shared_hosts([rules.hosts for rules in (one, other) if rules.links]),
        marking=max(one.marking, other.marking, key=_MARKING.index),
        patterns="\n".join(_lines(one.patterns) | _lines(other.patterns)),
    )


def _shared_hosts(lists: list[str]) -> str:
    """The hosts that every list has: links to these alone stay."""
    hosts, *others = [text.lower().split() for text in lists] or [[]]
    for others_hosts in others:
        within = [host for host in hosts if _is_in(host, others_hosts)]
        hosts = within + [host for host in others_hosts if _is_in(host, hosts)]
    return " ".join(sorted({*hosts}))


def _is_in(host: str, hosts: list[str]) -> bool:
    """Whether a list has all that `host` stands for: a name, or `*.` and what is below it."""
    return any(
        host == wanted or (wanted.startswith("*.") and host.removeprefix("*").endswith(wanted[1:]))
        for wanted in hosts
    )


def _lines(patterns: str) -> dict[str, None]:
    """Each pattern once, in order."""
    return dict.fromkeys(line.strip() for line in patterns.splitlines() if line.strip())
