"""Actions by name, such as "disable agent scout": each leads to the page where it is
confirmed, and does nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from config.palette_names import KINDS_TO_ACT_ON, Named, find_named

# A longer list is no answer: one more letter of the name shortens it.
ACTIONS_MAX = 8


class PaletteAction(NamedTuple):
    """`query` and `part` follow its page's address; {key} is what it is done to."""

    kind: str
    # With {name}.
    label: Any
    permission: str
    there: str
    query: str = ""
    part: str = ""
    has_key: bool = True


ACTIONS = [
    PaletteAction(
        "agent", _("Disable agent {name}"), "accounts.change_agent", "approvals:disable_agent"
    ),
    PaletteAction(
        "agent",
        _("Create a token for agent {name}"),
        "accounts.change_agenttoken",
        "accounts:agent",
        part="#tokens",
    ),
    PaletteAction(
        "agent",
        _("Deny all pending calls of agent {name}"),
        "approvals.decide_approval",
        "approvals:deny_all",
        "?agent={key}",
        has_key=False,
    ),
    PaletteAction(
        "agent",
        _("Emergency stop: suspend agent {name}"),
        "calls.begin_freeze",
        "approvals:new_freeze",
        "?what=agent:{key}",
        has_key=False,
    ),
    PaletteAction(
        "server",
        _("Emergency stop: suspend server {name}"),
        "calls.begin_freeze",
        "approvals:new_freeze",
        "?what=server:{key}",
        has_key=False,
    ),
    PaletteAction(
        "server", _("Disable server {name}"), "registry.change_server", "approvals:disable_server"
    ),
    PaletteAction(
        "server", _("Edit server {name}"), "registry.change_server", "registry:edit_server"
    ),
    PaletteAction(
        "server", _("Review tools of server {name}"), "registry.operate_server", "registry:review"
    ),
    PaletteAction(
        "person", _("Disable user {name}"), "accounts.change_user", "approvals:disable_person"
    ),
    PaletteAction(
        "toolset",
        _("Connect a client to toolset {name}"),
        "registry.view_toolset",
        "registry:connect",
    ),
    PaletteAction("rule", _("Remove rule {name}"), "policies.delete_rule", "policies:remove_rule"),
    PaletteAction(
        "limit", _("Disable limit {name}"), "policies.change_limit", "policies:switch_limit"
    ),
    PaletteAction(
        "limit", _("Remove limit {name}"), "policies.delete_limit", "policies:remove_limit"
    ),
]


class FoundAction(NamedTuple):
    label: str
    href: str


def find_actions(words: Sequence[str], person: User) -> Iterator[FoundAction]:
    """Actions whose label has all of these words, the name included; two words at least, so that a
    name alone finds what has the name."""
    may = [action for action in ACTIONS if person.has_perm(action.permission)]
    if len(words) < 2 or not may:
        return
    verbs = " ".join(str(action.label) for action in may).casefold()
    rest = [word for word in words if word not in verbs]
    if len(rest) == len(words):
        return
    kinds = {action.kind: KINDS_TO_ACT_ON[action.kind] for action in may}
    found = find_named(rest, person, kinds)
    named = [(action, one) for one in found for action in may if action.kind == one.kind]
    labels = [(_label(action, one), action, one) for action, one in named]
    fits = [one for one in labels if all(word in one[0].casefold() for word in words)]
    for label, action, one in fits[:ACTIONS_MAX]:
        yield FoundAction(label, _address(action, one))


def _label(action: PaletteAction, one: Named) -> str:
    return str(action.label).format(name=one.name)


def _address(action: PaletteAction, one: Named) -> str:
    there = reverse(action.there, args=[one.key] if action.has_key else [])
    return there + action.query.format(key=quote(one.key)) + action.part
