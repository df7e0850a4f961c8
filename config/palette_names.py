"""Servers, agents, users, toolsets, rules and limits by a part of their name, in one query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple

from django.db.models import F, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast, Concat
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.models import Agent, User
from policies.models import Limit, Rule
from registry.models import Server, Toolset

# Of each kind, so that no kind pushes another off the list.
RESULTS_MAX = 6


class Named(NamedTuple):
    """One of them. `key`: what its address is made of."""

    kind: str
    key: str
    name: str
    note: str


class NamedKind(NamedTuple):
    """`texts`: the fields that are searched, its name first."""

    label: Any
    rows: Callable[[User], QuerySet[Any]]
    key: str
    texts: Sequence[str]
    note: Any
    permission: str = ""


def _everything(model: Any) -> Callable[[User], QuerySet[Any]]:
    return lambda _person: model.objects.all()


_FULL_NAME = Concat("first_name", Value(" "), "last_name")
KINDS = {
    "server": NamedKind(
        _("Server"),
        _everything(Server),
        "slug",
        ("slug", "title"),
        F("title"),
        "registry.view_server",
    ),
    "agent": NamedKind(
        _("Agent"),
        Agent.objects.visible_to,
        "name",
        ("name",),
        F("owner__username"),
    ),
    "person": NamedKind(
        _("User"),
        _everything(User),
        "pk",
        ("username", "first_name", "last_name"),
        _FULL_NAME,
        "accounts.view_user",
    ),
    "toolset": NamedKind(
        _("Toolset"),
        _everything(Toolset),
        "slug",
        ("slug", "title"),
        F("title"),
        "registry.view_toolset",
    ),
    "rule": NamedKind(
        _("Rule"), _everything(Rule), "pk", ("name", "reason"), F("reason"), "policies.view_rule"
    ),
    "limit": NamedKind(
        _("Limit"), _everything(Limit), "pk", ("name",), Value(""), "policies.view_limit"
    ),
}

# Whoever may stop or deny an agent's calls reads its name there, and need not see its page.
KINDS_TO_ACT_ON = KINDS | {"agent": KINDS["agent"]._replace(rows=_everything(Agent))}


def find_named(
    words: Sequence[str], person: User, kinds: Mapping[str, NamedKind] = KINDS
) -> Iterator[Named]:
    """Those of these kinds that have every word in one of their texts, and that the person may
    see; at most RESULTS_MAX of each."""
    parts = [
        _rows(name, kind, words, person)
        for name, kind in kinds.items()
        if not kind.permission or person.has_perm(kind.permission)
    ]
    if parts:
        rows = parts[0].union(*parts[1:], all=True) if parts[1:] else parts[0]
        order = list(KINDS)
        yield from sorted(
            (Named(*row) for row in rows), key=lambda found: (order.index(found.kind), found.name)
        )


def _rows(name: str, kind: NamedKind, words: Sequence[str], person: User) -> Any:
    # The words of a name may stand in any order, and in any of its texts.
    every = [reduce(or_, (Q(**{f"{t}__icontains": w}) for t in kind.texts)) for w in words]
    found = kind.rows(person).filter(reduce(and_, every, Q()))
    columns = {
        "of_kind": Value(name, TextField()),
        "found_key": Cast(kind.key, TextField()),
        "found_name": Cast(kind.texts[0], TextField()),
        "found_note": Cast(kind.note, TextField()),
    }
    return found.order_by(kind.texts[0]).annotate(**columns).values_list(*columns)[:RESULTS_MAX]


def address(found: Named, person: User) -> str:
    match found.kind:
        case "server":
            return reverse("registry:server", args=[found.key])
        case "agent":
            return reverse("accounts:agent", args=[found.key])
        case "person":
            return reverse("accounts:person", args=[found.key])
        case "toolset":
            return reverse("registry:toolset", args=[found.key])
        case "rule" if not person.has_perm("policies.change_rule"):
            return f"{reverse('policies:rules')}#rule-{found.key}"
        case "rule":
            return reverse("policies:rule", args=[found.key])
        case _:
            return reverse("policies:limit", args=[found.key])
