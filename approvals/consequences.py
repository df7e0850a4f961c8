"""The consequences of an act that is hard to take back, in figures, for its confirmation page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import Count, Q
from django.utils.translation import gettext as _

from accounts import sessions
from accounts.issued_tokens import lasting_tokens
from accounts.models import Agent, AgentToken, ScimGroup, ScimToken, ScimUser, ServiceToken, User
from approvals.models import Grant, Vote
from calls.models import Call
from calls.record.states import State
from policies.coverage import covered, covered_tools, published_methods
from policies.models import Rule
from policies.thresholds import PERSON, BadThresholds, parse
from registry.models import Server, Tool, Toolset

END = "end_freeze"


class Figure(NamedTuple):
    label: str
    number: int


class Consequences(NamedTuple):
    figures: list[Figure]
    # What becomes of what is counted.
    sentences: list[str]


class OpenCalls(NamedTuple):
    pending: int
    queued: int
    running: int

    @property
    def figures(self) -> list[Figure]:
        return [
            Figure(_("Pending approvals"), self.pending),
            Figure(_("Queued calls"), self.queued),
            Figure(_("Running calls"), self.running),
        ]


def of_agent(agent: Agent) -> Consequences:
    """The consequences of disabling it."""
    calls = _open_calls(agent=agent)
    figures = [
        Figure(_("Valid tokens"), agent.tokens.valid().count()),
        *calls.figures,
        Figure(_("Toolsets that it may use"), agent.toolsets.count()),
        Figure(_("Rules that name it"), Rule.objects.speaking().filter(agents=agent).count()),
        Figure(_("Standing approvals"), Grant.objects.not_ended().filter(agent=agent).count()),
    ]
    opening = _("Its tokens open nothing from the next second on, until it is enabled again.")
    return Consequences(figures, [opening, *_ending(calls)])


def of_token(token: AgentToken) -> Consequences:
    """The consequences of revoking it."""
    calls = _open_calls(token=token)
    others = token.agent.tokens.valid().exclude(pk=token.pk).count()
    sentences = [_("It opens nothing from the next second on, and cannot be restored.")]
    if not others:
        sentences.append(_("The agent has no other valid token: it cannot connect without one."))
    figures = [Figure(_("Other valid tokens of the agent"), others), *calls.figures]
    return Consequences(figures, [*sentences, *_ending(calls)])


def of_service_token(token: ServiceToken) -> Consequences:
    """The consequences of revoking it."""
    others = token.account.tokens.valid().exclude(pk=token.pk).count()
    sentences = [_("It opens nothing from the next second on, and cannot be restored.")]
    if not others:
        sentences.append(_("The service account has no other valid token: its program stops."))
    figures = [Figure(_("Other valid tokens of the service account"), others)]
    return Consequences(figures, sentences)


def of_scim_token(token: ScimToken) -> Consequences:
    """The consequences of revoking it."""
    others = ScimToken.objects.valid().filter(issuer=token.issuer).exclude(pk=token.pk).count()
    users = ScimUser.objects.filter(issuer=token.issuer, deleted_at=None).count()
    groups = ScimGroup.objects.filter(issuer=token.issuer).count()
    sentences = [
        _("It opens nothing from the next second on, and cannot be restored."),
        _("Users and groups that were provisioned stay as they are."),
    ]
    if not others:
        sentences.append(
            _("The identity provider has no other valid token: it cannot change users here.")
        )
    figures = [
        Figure(_("Other valid tokens of the identity provider"), others),
        Figure(_("Provisioned users"), users),
        Figure(_("Groups"), groups),
    ]
    return Consequences(figures, sentences)


def of_grants(grants: Iterable[Grant]) -> Consequences:
    """The consequences of revoking these standing approvals."""
    found = list(grants)
    figures = [
        Figure(_("Standing approvals"), len(found)),
        Figure(_("Agents"), len({grant.agent_id for grant in found})),
        Figure(_("Uses left"), sum(max(0, grant.max_uses - grant.uses) for grant in found)),
    ]
    sentences = [
        _("Calls like these require approval again within a second."),
        _("A revoked standing approval cannot be restored."),
    ]
    return Consequences(figures, sentences)


def of_sessions(ended: int) -> Consequences:
    """The consequences of ending so many of one's own sessions."""
    sentences = [
        _("The browser must sign in again; text that was not saved is lost."),
    ]
    return Consequences([Figure(_("Sessions"), ended)], sentences)


def of_server(server: Server) -> Consequences:
    """The consequences of disabling it."""
    calls = _open_calls(server=server)
    toolsets = Toolset.objects.filter(Q(servers=server) | Q(tools__server=server)).distinct()
    agents = Agent.objects.filter(toolsets__in=toolsets).distinct()
    published = server.tools.without_methods().filter(state=Tool.State.PUBLISHED)
    figures = [
        Figure(_("Published tools"), published.count()),
        Figure(_("Toolsets"), toolsets.count()),
        Figure(_("Agents that may call it"), agents.count()),
        Figure(_("Rules that name it"), _rules_naming(server)),
        *calls.figures,
    ]
    opening = _("Agents no longer see its tools, and it is not asked any more.")
    return Consequences(figures, [opening, *_ending(calls)])


def of_person(person: User, *, by: User) -> Consequences:
    """The consequences of disabling their account."""
    calls = _open_calls(agent__owner=person)
    votes = Vote.objects.standing().filter(person=person, approval__state="waiting").count()
    tokens = AgentToken.objects.valid().filter(agent__owner=person)
    figures = [
        Figure(_("Sessions"), len(sessions.list_open(person))),
        Figure(_("Agents owned"), person.agents.count()),
        Figure(_("Valid tokens of these agents"), tokens.count()),
        *calls.figures,
        Figure(_("Votes on pending approvals"), votes),
        Figure(_("Standing approvals"), Grant.objects.not_ended().filter(owner=person).count()),
        Figure(_("Rules that ask for their approval"), _rules_asking(person)),
    ]
    sentences = [
        _("Their sessions and sign-in links end for good."),
        _(
            "Tokens of their agents are revoked, tokens of service accounts that they issued, and "
            "their standing approvals."
        ),
        _("Their votes on pending approvals no longer count."),
    ]
    ending = _ending(calls, running=_("Running calls of their agents are asked to stop."))
    return Consequences(figures, [*sentences, *ending, *_lasting(person, by)])


def _lasting(person: User, by: User) -> list[str]:
    names = [f"{one.token} ({one.holder})" for one in lasting_tokens(person, reader=by)]
    said = _("Tokens that they issued for others, and have seen, stay valid. Rotate them: %s.")
    return [said % ", ".join(names)] if names else []


def of_stop(by: User, agent: Agent | None = None, server: Server | None = None) -> Consequences:
    """The consequences of an emergency stop; of everything if nothing is named."""
    calls = _open_calls(**_named(agent=agent, server=server))
    may_end = User.objects.filter(is_active=True, groups__permissions__codename=END)
    enders = may_end.exclude(pk=by.pk).distinct().count()
    figures = [
        *([] if agent else [Figure(_("Agents"), Agent.objects.filter(enabled=True).count())]),
        *([] if server else [Figure(_("Servers"), Server.objects.filter(enabled=True).count())]),
        *calls.figures,
        Figure(_("Other users who can end it"), enders),
    ]
    sentences = [
        _("No new call is taken. Pending and queued calls stay as they are and start only after"
          " the emergency stop has ended; their time is suspended."),
        _("Running calls go on: cancel them on their pages."),
        _("Only another user can end it."),
    ]  # fmt: skip
    return Consequences(figures, sentences)


def of_rule(rule: Rule) -> Consequences:
    """The consequences of removing it."""
    pending = Call.objects.filter(state=State.HELD, rule_id=rule.pk).count()
    covers = covered(covered_tools([rule])[rule.pk], published_methods())
    figures = [
        Figure(_("Published tools that it covers"), covers.tools),
        Figure(_("Agents that it names"), rule.agents.count()),
        Figure(_("Pending approvals that it asked for"), pending),
    ]
    said = _("What is pending stays pending, unless other rules deny it or ask for more.")
    return Consequences(figures, [said] if pending else [])


def _named(**things: object) -> dict[str, object]:
    return {name: thing for name, thing in things.items() if thing is not None}


def _open_calls(**of: object) -> OpenCalls:
    def n(*states: State) -> Count:
        return Count("pk", filter=Q(state__in=states))

    counted = Call.objects.live().filter(**of).order_by()
    return OpenCalls(
        **counted.aggregate(
            pending=n(State.HELD),
            queued=n(State.APPROVED, State.QUEUED),
            running=n(State.RUNNING),
        )
    )


def _ending(calls: OpenCalls, running: str = "") -> Iterable[str]:
    """Says how open calls end whose agent, token or server is no longer there."""
    if calls.pending:
        yield _("Pending calls become superseded: nobody can approve them any more.")
    if calls.queued:
        yield _("Queued calls are not sent.")
    if calls.running:
        yield running or _("Running calls go on: cancel them on their pages.")


def _rules_naming(server: Server) -> int:
    return Rule.objects.speaking().filter(server=server.slug).count()


def _rules_asking(person: User) -> int:
    names = {f"{PERSON}{name}" for name in person.all_names}
    return sum(bool(names & _sources(rule)) for rule in Rule.objects.speaking())


def _sources(rule: Rule) -> set[str]:
    try:
        return {one.source for one in parse(rule.thresholds)}
    except BadThresholds:
        return set()
