"""Suggestions for the audit's filters: names in the record that have what somebody types."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import orjson
from django.db.models import QuerySet

from audit.models import Name
from core.actions import words

# Of a filter, which kind its names are.
KINDS = {"person": "person", "behalf": "person", "agent": "agent", "tool": "tool"}
SUGGESTED = 20
# Kinds of calls that rules decided: so many of the newest are read for the names of rules.
CONTEXTS = 2000


def suggestions(field: str, typed: str) -> list[tuple[str, str]]:
    """Up to SUGGESTED values of this filter, each with its label; none for a filter without."""
    match field:
        case "action":
            found = _actions(typed)
        case "rule":
            found = ((rule, "") for rule in _rules() if typed.casefold() in rule.casefold())
        case "server":
            servers = _of_kind("tool").exclude(server="").filter(server__icontains=typed)
            found = ((name, "") for name in _distinct(servers, "server"))
        case _ if field in KINDS:
            names = _of_kind(KINDS[field]).exclude(text="").filter(text__icontains=typed)
            found = ((name, "") for name in _distinct(names, "text"))
        case _:
            return []
    return list(islice(found, SUGGESTED))


def _actions(typed: str) -> Iterable[tuple[str, str]]:
    """By their names and by what they are called in this language."""
    known = [(action, words(action)) for action in _distinct(_of_kind("action"), "text", most=500)]
    wanted = typed.casefold()
    return (one for one in known if wanted in one[0] or wanted in one[1].casefold())


def _rules() -> list[str]:
    contexts = _of_kind("context").order_by("-pk").values_list("text", flat=True)[:CONTEXTS]
    rules = {orjson.loads(text).get("rule") for text in contexts if text}
    return sorted(rule for rule in rules if isinstance(rule, str) and rule)


def _of_kind(kind: str) -> QuerySet[Name]:
    return Name.objects.filter(kind=kind)


def _distinct(names: QuerySet[Name], column: str, *, most: int = SUGGESTED) -> list[str]:
    return list(names.order_by(column).values_list(column, flat=True).distinct()[:most])
