"""Actors for changes without a signed-in person, and errors of verbs on people."""

from __future__ import annotations

from accounts.models import User
from audit.services import Actor
from core.errors import CountersignError

# Whoever may run commands on the host: that right is not ours to check.
COMMAND_LINE = Actor("system", None, "command line")


class AccountRefused(CountersignError):
    """The agent, token or person cannot be as asked; says why, and what would be right."""


def acting(by: User | None) -> Actor:
    return by.actor if by else COMMAND_LINE
