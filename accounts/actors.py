"""Actors for changes without a signed-in person, and errors of verbs on people."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.models import ServiceAccount, User
from audit.services import Actor
from core.english import gettext as _
from core.errors import CountersignError

# Whoever may run commands on the host: that right is not ours to check.
COMMAND_LINE = Actor("system", None, _("command line"))


class AccountRefused(CountersignError):
    """The agent, token or person cannot be as asked; says why, and what would be right."""


@dataclass(frozen=True, slots=True)
class ServiceCaller:
    """A service account that acts by one of its tokens. Entries name the account; `person`, who
    created the token and answers for it, stands where a row names a user."""

    account: ServiceAccount
    person: User
    # Permissions that the token opens now.
    scopes: frozenset[str]

    @property
    def actor(self) -> Actor:
        return self.account.actor

    def has_perm(self, permission: str) -> bool:
        return permission in self.scopes


# A user, a service account, or a system such as an identity provider; None: the host's command
# line.
By = User | ServiceCaller | Actor | None


def acting(by: By) -> Actor:
    if isinstance(by, Actor):
        return by
    return by.actor if by else COMMAND_LINE


def account_of(by: By) -> User | None:
    """The user who answers for it, if there is one."""
    if isinstance(by, ServiceCaller):
        return by.person
    return by if isinstance(by, User) else None
