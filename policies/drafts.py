"""Values that a new rule begins with: of a tool, of another rule, or of a template."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, NamedTuple

from django.contrib.auth.models import Group
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.models import Agent
from policies.conditions import TEXT_MAX
from policies.models import Effect, Rule
from policies.offers import ConditionOffer
from policies.services import last_position
from registry.models import Tool

NAME_MAX = 100
# A copy begins with all that its original says but these.
_OWN = {"id", "position", "name"}


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """A rule that nobody saved yet. `offers`: conditions to choose from; `note`: for its reader."""

    values: Mapping[str, Any] = field(default_factory=dict)
    agents: Sequence[Agent] = ()
    owner_groups: Sequence[Group] = ()
    offers: Sequence[ConditionOffer] = ()
    note: str = ""

    def rule(self) -> Rule:
        return Rule(position=last_position(), **self.values)

    def initial(self) -> dict[str, Any]:
        """Values that a form cannot take from a rule without a row."""
        chosen = {"agents": self.agents, "owner_groups": self.owner_groups}
        return {name: [one.pk for one in rows] for name, rows in chosen.items() if rows}


def of_patterns(server: str, tool: str) -> RuleDraft:
    """A draft for the patterns that are given; of one tool, it asks, under the tool's name."""
    given = {name: text for name, text in (("server", server), ("tool", tool)) if text}
    if len(given) == 2:
        name = f"{server}.{tool}"[:NAME_MAX]
        is_taken = Rule.objects.filter(name=name).exists()
        given |= {"effect": Effect.ASK} | ({} if is_taken else {"name": name})
    return RuleDraft(given)


def copy_of(rule: Rule) -> RuleDraft:
    """All that the rule says, under another name."""
    columns = [one for one in rule._meta.concrete_fields if one.name not in _OWN]
    said = {column.attname: getattr(rule, column.attname) for column in columns}
    said["name"] = free_name(_("%s (copy)") % rule.name[: NAME_MAX - 20])
    return RuleDraft(said, tuple(rule.agents.all()), tuple(rule.owner_groups.all()))


def relaxed(rule: Rule, server: str, tool: str, agents: Sequence[int]) -> RuleDraft:
    """Allows what the rule asks about, for one tool and these agents. It only observes at first."""
    values = {
        "name": free_name(_("%(tool)s without asking") % {"tool": f"{server}.{tool}"}),
        "mode": Rule.Mode.SHADOW,
        "effect": Effect.ALLOW,
        "server": server,
        "tool": tool,
        "when": rule.when,
        "reason": _("It was always approved."),
    }
    named = tuple(Agent.objects.filter(pk__in=agents))
    return RuleDraft(values, named, tuple(rule.owner_groups.all()))


def free_name(name: str) -> str:
    """The name, or with the first number that makes it one that no rule has."""
    begun = name[: NAME_MAX - 5]
    taken = set(Rule.objects.filter(name__startswith=begun).values_list("name", flat=True))
    numbered = (f"{begun} {n}" for n in count(2))
    return next(one for one in chain([name[:NAME_MAX]], numbered) if one not in taken)


class RuleTemplate(NamedTuple):
    """`draft`: by the server that was given, and the reader's time zone."""

    key: str
    title: str | Promise
    says: str | Promise
    draft: Callable[[str, str], RuleDraft]
    needs_server: bool = False


def read_template(key: str, server: str, zone: str) -> RuleDraft:
    """The draft of this template; an empty one where there is no such template."""
    found = next((one for one in TEMPLATES if one.key == key), None)
    return found.draft(server, zone) if found else RuleDraft()


def _of_read_only(server: str, zone: str) -> RuleDraft:
    """Names its tools: what the server says of itself later on allows nothing more."""
    reading = Tool.objects.filter(
        server__slug=server, state=Tool.State.PUBLISHED, risk=Tool.Risk.READS
    )
    names = list(reading.order_by("name").values_list("name", flat=True)[:TEXT_MAX])
    if not names:
        said = _("“%s” has no published tool that is read-only.")
        return RuleDraft(note=said % server)
    shown = _fitting(names)
    values = {
        "name": free_name(_("Read-only tools of %s") % server),
        "effect": Effect.ALLOW,
        "server": server,
        "when": _one_of(names[:shown]),
        "reason": _("It is read-only."),
    }
    return RuleDraft(values, note=_of_so_many(shown, len(names)))


def _one_of(names: Sequence[str]) -> str:
    return f"tool.name in {json.dumps(names, ensure_ascii=False)}"


def _fitting(names: Sequence[str]) -> int:
    """How many of them a condition has room for."""
    shown = len(names)
    while len(_one_of(names[:shown])) > TEXT_MAX:
        shown -= 1
    return shown


def _of_so_many(shown: int, known: int) -> str:
    if shown < known:
        said = _(
            "A condition has room for %(shown)d of %(known)d tools. Create more rules for the rest."
        )
        return said % {"shown": shown, "known": known}
    said = ngettext(
        "Its condition names %d tool that its server calls read-only. Check it.",
        "Its condition names %d tools that their server calls read-only. Check them.",
        known,
    )
    return said % known


def _outside_hours(server: str, zone: str) -> RuleDraft:
    hours = f"now.getHours('{zone}') < 8 || now.getHours('{zone}') >= 18"
    values = {
        "name": free_name(_("Outside working hours")),
        "effect": Effect.ASK,
        "when": f"{hours} || now.getDayOfWeek('{zone}') in [0, 6]",
        "reason": _("Nobody is at work who would notice."),
    }
    return RuleDraft(values | _server(server))


def _path_under(server: str, zone: str) -> RuleDraft:
    values = {
        "name": free_name(_("Paths under a folder")),
        "effect": Effect.ALLOW,
        "when": "path_within(args.path, '/srv/reports')",
        "reason": _("It stays under the folder."),
    }
    return RuleDraft(values | _server(server))


def _amount_over(server: str, zone: str) -> RuleDraft:
    values = {
        "name": free_name(_("Amounts over a limit")),
        "effect": Effect.ASK,
        "when": "!max_amount(args.amount, 1000)",
        "reason": _("The amount is over the limit."),
    }
    return RuleDraft(values | _server(server))


def _new_tool(server: str, zone: str) -> RuleDraft:
    values = {
        "name": free_name(_("New tool of an agent")),
        "effect": Effect.ASK,
        "when": "now - history.last_approved > duration('720h')",
        "reason": _("Nobody approved this tool for this agent within 30 days."),
    }
    return RuleDraft(values | _server(server))


def _flow_out(server: str, zone: str) -> RuleDraft:
    values = {
        "name": free_name(_("Strangers' texts, then secrets, then out")),
        "effect": Effect.ASK,
        "when": "'sink' in tool.labels && flow.untrusted && flow.sensitive",
        "reason": _("It sends outside after an untrusted and a sensitive source were read."),
    }
    return RuleDraft(values | _server(server))


def _secrets_out(server: str, zone: str) -> RuleDraft:
    values = {
        "name": free_name(_("Secrets in what is sent outside")),
        "effect": Effect.ASK,
        "when": "'sink' in tool.labels && outgoing.secrets.size() > 0",
        "reason": _("Its arguments contain a key, a token or a password, and it sends outside."),
    }
    return RuleDraft(values | _server(server))


def _unusual(server: str, zone: str) -> RuleDraft:
    values = {
        "name": free_name(_("Unusual use by an agent")),
        "effect": Effect.ASK,
        "when": "unusual.hour || unusual.rate >= 10.0 || unusual.refusals >= 5 || "
        "unusual.address || (unusual.first_use && 'sink' in tool.labels)",
        "reason": _(
            "It is unusual for this agent: a new hour or address, ten times as many calls, "
            "blocked calls in a row, or a first use of a tool that sends outside."
        ),
    }
    return RuleDraft(values | _server(server))


def _server(server: str) -> dict[str, str]:
    return {"server": server} if server else {}


TEMPLATES = (
    RuleTemplate(
        "read-only",
        gettext_lazy("Read-only tools of a server"),
        gettext_lazy("Allows the published tools that the server calls read-only, by their names."),
        _of_read_only,
        needs_server=True,
    ),
    RuleTemplate(
        "hours",
        gettext_lazy("Outside working hours"),
        gettext_lazy("Requires approval at night and at weekends, in your time zone."),
        _outside_hours,
    ),
    RuleTemplate(
        "path",
        gettext_lazy("Path under a folder"),
        gettext_lazy("Allows calls whose path stays under a folder."),
        _path_under,
    ),
    RuleTemplate(
        "amount",
        gettext_lazy("Amount over a limit"),
        gettext_lazy("Requires approval where an amount is over a limit."),
        _amount_over,
    ),
    RuleTemplate(
        "new-tool",
        gettext_lazy("New tool of an agent"),
        gettext_lazy("Requires approval unless the tool was approved for the agent lately."),
        _new_tool,
    ),
    RuleTemplate(
        "flow",
        gettext_lazy("Untrusted source, sensitive source, then out"),
        gettext_lazy(
            "Requires approval where an agent read both lately and now sends outside, by the "
            "labels of its tools."
        ),
        _flow_out,
    ),
    RuleTemplate(
        "secrets",
        gettext_lazy("Secrets in what is sent outside"),
        gettext_lazy(
            "Requires approval where arguments contain a key, a token or a password and the tool "
            "sends outside. Choose the effect Deny to block instead."
        ),
        _secrets_out,
    ),
    RuleTemplate(
        "unusual",
        gettext_lazy("Unusual use by an agent"),
        gettext_lazy(
            "Requires approval at an hour at which it never called, for ten times as many calls, "
            "after blocked calls in a row, and for a first use of a tool that sends outside."
        ),
        _unusual,
    ),
)
