"""Objects that the page knows, and what people do on pages about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet
from django.urls import URLPattern, get_resolver, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import VIEW_AGENTS, Agent, User
from accounts.permission_names import PERMISSION_NAMES
from accounts.permission_sources import RoleBook
from accounts.scopes import ScopeTarget
from accounts.views.agents import may_handle_tokens, may_issue_tokens
from approvals import eligibility
from approvals.delegations import names_for
from approvals.models import Approval
from calls.models import Call
from calls.views.call_page import may_cancel, may_read_payload
from config.access.verdicts import Act, ApprovalAct, PermissionAct
from config.targets import FINDERS, OF_MANY
from core.http import permission_of
from policies import decide
from policies.decide import CompiledRule
from policies.models import Rule
from policies.simulate import asking_rules
from policies.thresholds import DECIDE, DEFAULT, Threshold, plain
from registry.models import Server, Tool, Toolset

SUGGESTED = 20
VIEW_RECEIVED = "calls.view_received"
TAKE_MORE = (DECIDE, VIEW_RECEIVED)
# Of an approval that is not there: nothing has this id.
NO_CALL = UUID(int=0)


class Kind(NamedTuple):
    """A kind of objects. `address`: the page of one, if it has one for readers."""

    name: str
    label: object
    # Who may see one at all.
    permission: str
    rows: Callable[[], QuerySet[Any]]
    field: str
    # Where the addresses of pages about one begin.
    places: tuple[str, ...]
    address: str


KINDS = {
    kind.name: kind
    for kind in (
        Kind("server", gettext_lazy("Server"), "registry.view_server",
             Server.objects.kept, "slug", ("servers/<slug:slug>/",), "registry:server"),
        Kind("tool", gettext_lazy("Tool"), "registry.view_tool",
             lambda: Tool.objects.select_related("server", "published"), "exposed_name",
             ("tools/<tool:name>/",), "registry:tool"),
        Kind("toolset", gettext_lazy("Toolset"), "registry.view_toolset",
             Toolset.objects.all, "slug", ("toolsets/<slug:slug>/",), "registry:toolset"),
        Kind("agent", gettext_lazy("Agent"), VIEW_AGENTS,
             Agent.objects.all, "name", ("agents/<slug:name>/",), "accounts:agent"),
        Kind("rule", gettext_lazy("Rule"), "policies.view_rule",
             Rule.objects.all, "name", ("policies/<int:pk>/",), ""),
        Kind("call", gettext_lazy("Call"), "calls.view_call",
             Call.objects.for_page, "pk",
             ("calls/<uuid:call_id>/", "queue/<uuid:call_id>/"), "calls:detail"),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AccessObject:
    kind: Kind
    name: str
    row: Any

    @property
    def target(self) -> ScopeTarget | None:
        find = FINDERS.get(self.kind.places[0])
        return find(self.name) if find else None

    @property
    def shown(self) -> str:
        """Its name for people: of a call, tool and fingerprint."""
        if isinstance(self.row, Call):
            return f"{self.row.tool_name} · {self.row.fingerprint}"
        return self.name

    @property
    def address(self) -> str:
        return reverse(self.kind.address, args=[self.name]) if self.kind.address else ""

    def hides_rules_from(self, person: User) -> bool:
        """Whether the answers of who approves would name rules that this person may not see. That a
        tool has none is not said either."""
        return isinstance(self.row, Tool) and not person.has_perm("policies.view_rule")

    def is_visible_to(self, person: User) -> bool:
        if isinstance(self.row, Agent):
            return self.row.is_visible_to(person)
        return person.has_perm(self.kind.permission)


def find_object(kind: Kind, name: str) -> AccessObject | None:
    if kind.field == "pk":
        try:
            name = str(UUID(name))
        except ValueError:
            return None
    row = kind.rows().filter(**{kind.field: name}).first()
    return AccessObject(kind, name, row) if row else None


def suggest(kind: Kind, text: str) -> list[str]:
    """Names that contain the text."""
    if kind.field == "pk":
        return []
    found = kind.rows().filter(**{f"{kind.field}__icontains": text}).order_by(kind.field)
    return list(found.values_list(kind.field, flat=True)[:SUGGESTED])


def acts_of(shown: AccessObject, book: RoleBook, *, hides_rules: bool = False) -> list[Act]:
    target = shown.target
    return [
        *([] if hides_rules else _approval_acts(shown, book)),
        *_row_acts(shown, target, book),
        *_page_acts(shown, target, book),
    ]


def permission_act(permission: str, book: RoleBook) -> PermissionAct:
    """A permission for everything, or for what some tags cover."""
    label = _(PERMISSION_NAMES.get(permission, permission))
    return PermissionAct(permission, label, permission, book)


def _page_acts(
    shown: AccessObject, target: ScopeTarget | None, book: RoleBook
) -> Iterator[PermissionAct]:
    """Permissions of the pages below its address, without those that are not enough alone."""
    there = {pair for place in shown.kind.places for pair in pages_below(place)}
    order = list(PERMISSION_NAMES)
    known = [pair for pair in there if pair[0] in PERMISSION_NAMES and pair[0] not in TAKE_MORE]
    for permission, is_of_many in sorted(known, key=lambda pair: (order.index(pair[0]), pair[1])):
        label = _(PERMISSION_NAMES[permission])
        if is_of_many:
            label = _("%s, with other objects") % label
            yield PermissionAct(f"{permission}+", label, permission, book, is_of_many=True)
        else:
            yield PermissionAct(permission, label, permission, book, target)


def _row_acts(
    shown: AccessObject, target: ScopeTarget | None, book: RoleBook
) -> list[PermissionAct]:
    """Acts that its owner may do without a permission."""
    row = shown.row
    if isinstance(row, Agent):
        own = partial(PermissionAct, book=book, target=target, owner_id=row.owner_id,
                      own=_("The agent is theirs."))  # fmt: skip
        return [
            own("see", _("View the agent"), VIEW_AGENTS, rule=row.is_visible_to),
            own("tokens", _("Issue and rotate its tokens"), "accounts.change_agenttoken",
                rule=lambda person: row.is_visible_to(person) and may_issue_tokens(person, row)),
            own("revoke", _("Revoke its tokens"), "accounts.change_agenttoken",
                rule=lambda person: row.is_visible_to(person) and may_handle_tokens(person, row)),
        ]  # fmt: skip
    if isinstance(row, Call):
        own = partial(PermissionAct, book=book, target=target, owner_id=row.person_id,
                      own=_("Their agent asked for it."))  # fmt: skip
        sees = "calls.view_call"
        return [
            own("payload", _("View arguments and results"), "calls.view_payload",
                rule=lambda one: one.has_perm(sees) and may_read_payload(row, one)),
            PermissionAct("received", _(PERMISSION_NAMES[VIEW_RECEIVED]), VIEW_RECEIVED, book,
                target,
                rule=lambda one: (one.has_perm(sees) and one.has_perm(VIEW_RECEIVED)
                                  and may_read_payload(row, one))),
            own("cancel", _("Cancel the call"), "calls.cancel_call",
                rule=lambda one: one.has_perm(sees) and may_cancel(row, one)),
        ]  # fmt: skip
    return []


def _approval_acts(shown: AccessObject, book: RoleBook) -> list[ApprovalAct]:
    match shown.row:
        case Tool() as tool:
            return _tool_approvals(tool, book)
        case Agent() as agent:
            excluded = eligibility.excluded_by_agent(agent)
            label = _("Approve calls of the agent, where a rule asks whoever may decide")
            return [ApprovalAct("approve", label, book, _unsaved(DEFAULT), excluded=excluded)]
        case Rule() as rule:
            found = [one for one in decide.load().rules if one.id == rule.pk and one.asks]
            return [_rule_approval(one, book) for one in found]
        case Call() as call:
            return _call_approvals(call, book)
    return []


def _tool_approvals(tool: Tool, book: RoleBook) -> list[ApprovalAct]:
    """By each rule that asks about some of its calls."""
    if tool.state != Tool.State.PUBLISHED:
        # Nobody can call it.
        return []
    if rules := asking_rules(tool):
        return [_rule_approval(one, book) for one in rules]
    label = _("Approve calls that no rule covers")
    return [ApprovalAct("approve", label, book, _unsaved(DEFAULT))]


def _rule_approval(rule: CompiledRule, book: RoleBook) -> ApprovalAct:
    label = _("Approve calls for which the rule “%s” asks") % rule.name
    approval = _unsaved(rule.thresholds)
    return ApprovalAct(f"approve-{rule.id}", label, book, approval, rule.name)


def _call_approvals(call: Call, book: RoleBook) -> list[ApprovalAct]:
    approval = Approval.objects.waiting().select_related("call").filter(pk=call.pk).first()
    if approval is None:
        return []
    known = eligibility.facts([call.pk])[call.pk]
    votes = {vote.person_id: vote for vote in approval.standing}
    return [
        ApprovalAct(
            "approve",
            _("Approve or deny the call"),
            book,
            approval,
            known.rule,
            known.excluded,
            votes,
            names_for(known.delegations, _names(known.delegations)),
        )
    ]


def _names(delegations: Any) -> Mapping[int, str]:
    if not delegations:
        return {}
    ids = [delegator for delegator, _delegate in delegations]
    return dict(User.objects.filter(pk__in=ids).values_list("pk", "username"))


def _unsaved(thresholds: tuple[Threshold, ...]) -> Approval:
    return Approval(call=Call(pk=NO_CALL), thresholds=plain(thresholds))


@cache
def pages_below(place: str) -> frozenset[tuple[str, bool]]:
    """The permissions of the pages whose addresses begin there, and whether they are about other
    objects too."""
    return frozenset(
        (permission, name in OF_MANY)
        for route, name, permission in _pages(get_resolver().url_patterns)
        if permission and route.startswith(place)
    )


def _pages(patterns: Any, before: str = "", space: str = "") -> Iterator[tuple[str, str, str]]:
    for one in patterns:
        route = before + str(one.pattern)
        if isinstance(one, URLPattern):
            yield route, f"{space}:{one.name}", permission_of(one.callback)
        else:
            yield from _pages(one.url_patterns, route, one.namespace or space)
