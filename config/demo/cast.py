"""The people, agents and rules of the demo."""

from __future__ import annotations

from typing import Any

from accounts import display_names
from accounts import services as accounts
from accounts.models import Agent, User
from accounts.roles import Role
from audit.services import SYSTEM
from config.first_run import TOOLSET
from policies.models import Effect, Rule
from policies.services import remove_rule, save_rule
from policies.thresholds import Threshold, plain
from registry import services as registry
from registry.models import Toolset

PEOPLE = {
    "mei.chen": ("Mei Chen 陈梅", (Role.OPERATOR,)),
    "jonas.berg": ("Jonas Berg", (Role.APPROVER,)),
    "amara.okafor": ("Amara Okafor", (Role.APPROVER,)),
    "sofia.rossi": ("Sofia Rossi", (Role.APPROVER, Role.AUDITOR)),
    "li.wei": ("Li Wei 李伟", (Role.AUDITOR,)),
}
# With the person on whose behalf each acts.
AGENTS = {
    "scout": "mei.chen",
    "harbour-desk": "jonas.berg",
    "ledger-clerk": "amara.okafor",
    "night-watch": "jonas.berg",
    "code-reviewer": "mei.chen",
}
DAY_S = 24 * 3600
RULES: list[dict[str, Any]] = [
    {
        "name": "Mail only to partners and passengers",
        "effect": Effect.DENY,
        "server": "mailer",
        "tool": "send_mail",
        "when": "args.to.exists(a, a.endsWith('@rival.example'))",
        "reason": "Nothing is mailed to competitors.",
        "instead": "Addresses of partners and passengers.",
    },
    {
        "name": "Two people approve a deletion",
        "effect": Effect.ASK,
        "server": "file-writer",
        "tool": "delete_file",
        "reason": "A deleted file does not come back.",
        "thresholds": plain([Threshold(approve=2)]),
        "decide_within": DAY_S,
    },
    {
        "name": "Mails are read before they are sent",
        "effect": Effect.ASK,
        "server": "mailer",
        "tool": "send_mail",
        "reason": "A passenger sees it at once.",
        "decide_within": DAY_S,
    },
    {
        "name": "Files are read before they are written",
        "effect": Effect.ASK,
        "server": "file-writer",
        "tool": "write_file",
        "reason": "The shared folder is everybody's.",
        "decide_within": DAY_S,
    },
]


def set_up() -> dict[str, Agent]:
    """Makes them by the product's own verbs, each with its entry."""
    people = {name: _make_person(name) for name in PEOPLE}
    toolset = Toolset.objects.get(slug=TOOLSET)
    agents = {}
    for name, owner in AGENTS.items():
        agents[name] = accounts.create_agent(name, owner=people[owner], by=None)
        registry.assign(toolset, agents[name], by=None)
    for example in Rule.objects.filter(name__endswith=", writing"):
        remove_rule(example, by=SYSTEM)
    for place, rule in enumerate(RULES, start=1):
        save_rule(Rule(position=place, **rule), by=SYSTEM)
    return agents


def _make_person(name: str) -> User:
    shown, roles = PEOPLE[name]
    made = accounts.create_person(name, roles=roles, by=None)
    display_names.set_display_name(made, shown)
    return made
