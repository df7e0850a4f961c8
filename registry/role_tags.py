"""Tags of servers, toolsets and agents, to which roles may be limited (accounts/scopes.py)."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from accounts.actors import AccountRefused
from accounts.custom_roles import own_tags, read_tags
from accounts.models import Agent, User
from audit.services import record
from core.english import gettext as _
from registry.models import Server, Toolset

Tagged = Server | Toolset | Agent
# Kind → its model, the field of its name, and the permission that setting tags takes, everywhere.
KINDS: dict[str, tuple[type[Tagged], str, str]] = {
    "server": (Server, "slug", "registry.change_server"),
    "toolset": (Toolset, "slug", "registry.change_toolset"),
    "agent": (Agent, "name", "accounts.change_agent"),
}


@transaction.atomic
def set_role_tags(kind: str, shown: Tagged, text: str, *, by: User) -> None:
    """Changes who may do what, with the next request. Raises AccountRefused."""
    words = read_tags(text)
    before = list(shown.tags)
    if own := _own(kind, {*words} ^ {*before}, by):
        said = _("A role of yours is limited to “%s”: another administrator must set this tag.")
        raise AccountRefused(said % own)
    if before == list(words):
        return
    shown.tags = list(words)
    shown.save(update_fields=["tags"])
    details = {"kind": kind, "name": str(shown), "before": before, "after": list(words)}
    record("role_tags.set", actor=by.actor, **details)


def _own(kind: str, changed: Iterable[str], by: User) -> str:
    """A tag by which they would give themselves more, or another less than themselves."""
    mine = own_tags(by, kind)
    return next((tag for tag in sorted(changed) if tag in mine), "")
