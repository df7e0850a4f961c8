"""Rows that go with a removed rule, in apps that know rules, and not the other way round."""

from __future__ import annotations

from collections.abc import Callable

from audit.services import Actor
from policies.models import Rule

BeforeRemoval = Callable[[Rule, Actor], None]
_before: list[BeforeRemoval] = []


def register(*before: BeforeRemoval) -> None:
    """Each is called in the transaction that removes a rule, before it does."""
    _before.extend(before)


def prepare(rule: Rule, by: Actor) -> None:
    for one in _before:
        one(rule, by)
