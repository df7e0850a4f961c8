"""Actors for changes without a signed-in person, and errors of verbs on people."""

from __future__ import annotations

from accounts.models import User
from audit.services import Actor
from core.english import gettext as _
from core.errors import CountersignError

# Whoever may run commands on the host: that right is not ours to check.
COMMAND_LINE = Actor("system", None, _("command line"))


class AccountRefused(CountersignError):
    """The agent, token or person cannot be as asked; says why, and what would be right."""


# A user, or a system such as an identity provider; nobody: the host's command line.
By = User | Actor | None


def acting(by: By) -> Actor:
    if isinstance(by, Actor):
        return by
    return by.actor if by else COMMAND_LINE


def account_of(by: By) -> User | None:
    return by if isinstance(by, User) else None
