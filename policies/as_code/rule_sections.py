"""Rules and limits in a policy file: all that there are."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from django.contrib.auth.models import Group
from django.db.models import CharField, QuerySet

from accounts.models import Agent
from audit.services import Actor
from core.english import gettext as _
from policies import services
from policies.as_code import schemas
from policies.as_code.rows import LIMIT_MEMBERS, NAMED, RULE_MEMBERS, plain_limit, plain_rule
from policies.as_code.rows import plain_value as value_of
from policies.as_code.sections import BadMember, Plain, Section, named_rows
from policies.limits import services as limit_services
from policies.models import Limit, Rule
from policies.thresholds import BadThresholds, parse
from registry.managed import LIMITS, RULES

REQUIRED = ("name", "effect", "kind", "amount")


def _read(
    rows: QuerySet[Any], plain: Callable[[Any], Plain], names: Collection[str] | None
) -> dict[str, Plain]:
    shown = rows if names is None else rows.filter(name__in=list(names))
    return {row.name: plain(row) for row in shown.prefetch_related(*NAMED)}


def _present_rule(row: Rule) -> Plain:
    """With thresholds written out; those that cannot be read as they are."""
    try:
        written = [one.plain() for one in parse(row.thresholds)]
    except BadThresholds:
        written = row.thresholds
    return {**plain_rule(row), "thresholds": written}


def _filled(model: type[Rule | Limit], members: Collection[str], given: Plain) -> Plain:
    return {name: given[name] if name in given else _default_of(model, name) for name in members}


def _default_of(model: type[Rule | Limit], name: str) -> Any:
    column: Any = model._meta.get_field(name)
    return [] if name in NAMED else column.get_default()


def _checked(row: Rule | Limit, filled: Plain, now: Plain | None) -> Plain:
    """The members as they would be saved. Raises ValidationError and BadMember. An object that
    stays as it is passes: its deciders or its tool may have changed since it was saved."""
    filled = {**filled, **{name: sorted(set(filled[name])) for name in NAMED}}
    if filled == now:
        return filled
    _check_spaces(row, filled)
    row.full_clean(validate_unique=False, exclude=["position"])
    named_rows(Agent.objects.all(), "name", filled["agents"], "agents")
    named_rows(Group.objects.all(), "name", filled["owner_groups"], "owner_groups")
    plain = {
        name: value if name in NAMED else value_of(getattr(row, name))
        for name, value in filled.items()
    }
    if isinstance(row, Rule):
        plain["thresholds"] = [one.plain() for one in parse(row.thresholds)]
    return plain


def _check_spaces(row: Rule | Limit, filled: Plain) -> None:
    """Forms strip texts; here, spaces would make a name that looks like another one."""
    for name, value in filled.items():
        if isinstance(row._meta.get_field(name), CharField) and value != value.strip():
            raise BadMember(_("Remove the spaces before or after the text."), name)


def _columns(plain: Plain) -> Plain:
    return {name: value for name, value in plain.items() if name not in NAMED}


def _normal_rule(name: str, given: Plain, now: Plain | None) -> Plain:
    filled = _filled(Rule, RULE_MEMBERS, {**given, "name": name})
    return _checked(Rule(**_columns(filled)), filled, now)


def _normal_limit(name: str, given: Plain, now: Plain | None) -> Plain:
    filled = _filled(Limit, LIMIT_MEMBERS, {**given, "name": name})
    filled |= {key: str(filled[key]) for key in ("amount", "cost") if filled[key] is not None}
    return _checked(Limit(**_columns(filled)), filled, now)


def _save_rule(name: str, plain: Plain, by: Actor) -> None:
    row = Rule.objects.filter(name=name).first() or Rule(position=services.last_position())
    _save(row, plain, by, services.save_rule)


def _save_limit(name: str, plain: Plain, by: Actor) -> None:
    _save(Limit.objects.filter(name=name).first() or Limit(), plain, by, limit_services.save_limit)


def _save(row: Rule | Limit, plain: Plain, by: Actor, save: Callable[..., object]) -> None:
    for name, value in _columns(plain).items():
        setattr(row, name, value)
    agents = named_rows(Agent.objects.all(), "name", plain["agents"], "agents")
    groups = named_rows(Group.objects.all(), "name", plain["owner_groups"], "owner_groups")
    save(row, by=by, agents=agents, owner_groups=groups)


def _without_defaults(model: type[Rule | Limit]) -> Callable[[Plain], Plain]:
    def shown(plain: Plain) -> Plain:
        return {
            name: _number(value) if name in ("amount", "cost") else value
            for name, value in plain.items()
            if name in REQUIRED or value != _default_of(model, name)
        }

    return shown


def _number(value: Any) -> Any:
    """A whole amount as a number, which reads better than a text."""
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 15 else value


def _remove_rule(name: str, by: Actor) -> None:
    services.remove_rule(Rule.objects.get(name=name), by=by)


def _remove_limit(name: str, by: Actor) -> None:
    limit_services.remove_limit(Limit.objects.get(name=name), by=by)


def _needs(model: str) -> dict[str, tuple[str, ...]]:
    verbs = {"added": "add", "changed": "change", "removed": "delete", "moved": "change"}
    return {kind: (f"policies.{verb}_{model}",) for kind, verb in verbs.items()}


RULE_SECTION = Section(
    RULES,
    True,
    lambda names: _read(Rule.objects.in_order(), _present_rule, names),
    _normal_rule,
    _save_rule,
    _without_defaults(Rule),
    schemas.rule,
    _needs("rule"),
    _remove_rule,
    services.order_rules,
)
LIMIT_SECTION = Section(
    LIMITS,
    True,
    lambda names: _read(Limit.objects.order_by("name"), plain_limit, names),
    _normal_limit,
    _save_limit,
    _without_defaults(Limit),
    schemas.limit,
    _needs("limit"),
    _remove_limit,
)
