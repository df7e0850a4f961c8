"""Rules and limits as plain members: all that their forms have, in the forms' order."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from typing import Any

from django.db.models import Manager

from policies.forms.limits import LimitForm
from policies.forms.rules import RuleForm
from policies.models import Limit, Rule

RULE_MEMBERS = tuple(name for name in RuleForm.base_fields if name != "offered")
LIMIT_MEMBERS = tuple(LimitForm.base_fields)
# Members that are lists of names.
NAMED = ("agents", "owner_groups")


def plain_rule(row: Rule) -> dict[str, Any]:
    return _plain(row, RULE_MEMBERS)


def plain_limit(row: Limit) -> dict[str, Any]:
    return _plain(row, LIMIT_MEMBERS)


def _plain(row: Rule | Limit, names: Collection[str]) -> dict[str, Any]:
    return {name: plain_value(getattr(row, name)) for name in names}


def plain_value(value: Any) -> Any:
    if isinstance(value, Manager):
        return sorted(one.name for one in value.all())
    return f"{value.normalize():f}" if isinstance(value, Decimal) else value
